#include "dashboard/view.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "config/run_folder.h"
#include "core/files.h"
#include "core/json.h"
#include "dashboard/page.h"
#include "dashboard/static_report.h"
#include "report/panels.h"
#include "support/temporary_folder.h"

namespace quern::dashboard {
namespace {

using Json = nlohmann::json;

class ViewTest : public ::testing::Test {
 protected:
  void SetUp() override {
    config_.train.steps = 100;
    config_.train.batch = 4;
    config_.model.context = 32;
    train::write_config(config_, folder_.path());
  }
  void append(const std::string& line) { std::ofstream(folder_ / "metrics.jsonl", std::ios::app) << line << "\n"; }
  void log_steps(uint64_t first, uint64_t last) {
    std::ofstream file(folder_ / "metrics.jsonl", std::ios::app);
    for (uint64_t step = first; step <= last; ++step) {
      file << fmt::format(R"({{"step":{},"loss":{},"rate":0.001,"tokens_per_s":500,"elapsed":{}}})", step,
                          1.0 / static_cast<double>(step), step * 2)
           << "\n";
    }
  }
  Json view(const ViewOptions& options = {}) {
    if (runs_.empty()) runs_.push_back(std::make_unique<WatchedRun>("0", folder_.path()));
    for (const auto& run : runs_) run->refresh(train::HeldLocks());
    return parse_json(view_json(runs_, options, "1.2 (abc)"));
  }

  test::TemporaryFolder folder_;
  train::RunConfig config_;
  std::vector<std::unique_ptr<WatchedRun>> runs_;
};

TEST_F(ViewTest, HasWhatTheContractSays) {
  report::write_panels(folder_.path(), config_, {.floor = 0.5});
  append(R"({"step":0,"start":{"time":"T","threads":2,"command":"quern train","cpu":"a CPU","parameters":1000}})");
  log_steps(1, 10);
  append(R"({"step":10,"validation_loss":0.25})");
  append(R"({"step":10,"health":{"a":{"norm":1,"update_ratio":0.001},"b":{"norm":null,"update_ratio":0.5}}})");
  append(R"({"step":10,"operations":{"AdamW":0.25,"qkv forward":0.5}})");
  append(R"({"step":10,"sample":{"prompt":"</script>","text":"<b>é"}})");
  append(R"({"step":10,"limit":"compute"})");
  append(R"({"step":10,"end":{"finished":false,"weights_hash":"12ab"}})");
  const Json all = view();
  EXPECT_EQ(all["version"], 1);
  EXPECT_EQ(all["quern"], "1.2 (abc)");
  const Json& run = all["runs"][0];
  EXPECT_EQ(run["id"], "0");
  EXPECT_EQ(run["state"], "stopped");
  EXPECT_EQ(run["step"], 10);
  EXPECT_EQ(run["steps"], 100);
  EXPECT_EQ(run["seconds"], 20);
  EXPECT_TRUE(run["seconds_left"].is_null());
  const Json& loss = run["series"]["loss"];
  EXPECT_EQ(loss["step"].size(), 10u);
  EXPECT_EQ(loss["value"][3], 0.25);
  EXPECT_EQ(loss["tokens"][3], 4 * 4 * 32);
  EXPECT_EQ(loss["seconds"][3], 8);
  EXPECT_TRUE(loss["low"].is_null());
  EXPECT_EQ(loss["points"], 10);
  EXPECT_EQ(run["series"]["validation_loss"]["value"], Json::array({0.25}));
  const Json& health = run["heatmaps"]["health"];
  EXPECT_EQ(health["rows"], Json::array({"a", "b"}));
  EXPECT_EQ(health["step"], Json::array({10}));
  EXPECT_TRUE(health["measures"]["norm"][1][0].is_null());
  EXPECT_EQ(health["measures"]["update_ratio"][1][0], 0.5);
  EXPECT_EQ(run["tables"]["operations"]["rows"], Json::array({{"qkv forward", 50}, {"AdamW", 25}}));
  EXPECT_EQ(run["texts"]["sample"][0]["text"], "<b>é");
  EXPECT_EQ(run["events"].size(), 2u);
  EXPECT_EQ(run["panels"][0]["id"], "loss");
  EXPECT_EQ(run["panels"][0]["rules"][0]["value"], 0.5);
  std::map<std::string, std::string> header;
  for (const Json& row : run["header"]) header[row["label"]] = row["value"];
  EXPECT_EQ(header["Command"], "quern train");
  EXPECT_EQ(header["Weights hash"], "12ab");
  EXPECT_EQ(header["Limited by"], "compute");
  EXPECT_TRUE(header["Model"].find("1000 parameters") != std::string::npos) << header["Model"];
  EXPECT_EQ(run["summary"][0]["label"], "loss");
  EXPECT_EQ(run["summary"][0]["best_step"], 10);
}

TEST_F(ViewTest, ZoomsOnAnyAxis) {
  log_steps(1, 100);
  const auto steps = [&](Axis axis, double from, double to) {
    return view({.axis = axis, .from = from, .to = to})["runs"][0]["series"]["loss"]["step"].get<std::vector<int>>();
  };
  EXPECT_EQ(steps(Axis::kStep, 5, 7), (std::vector{5, 6, 7}));
  EXPECT_EQ(steps(Axis::kTime, 10, 14), (std::vector{5, 6, 7}));
  EXPECT_EQ(steps(Axis::kTokens, 5 * 128, 7 * 128), (std::vector{5, 6, 7}));
  EXPECT_EQ(steps(Axis::kTokens, 5 * 128 - 1, 7 * 128 + 1), (std::vector{5, 6, 7}));
  EXPECT_TRUE(steps(Axis::kStep, 500, 700).empty());
  const Json coarse = view({.points = 10})["runs"][0]["series"]["loss"];
  EXPECT_LE(coarse["step"].size(), 10u);
  EXPECT_EQ(coarse["high"][0], 1);
}

TEST_F(ViewTest, TellsTheStateOfARun) {
  EXPECT_EQ(view()["runs"][0]["state"], "stopped");
  append(R"({"step":0,"start":{"time":"T"}})");
  log_steps(1, 3);
  EXPECT_EQ(view()["runs"][0]["state"], "interrupted");  // started, not ended, and nobody holds the lock
  append(R"({"step":3,"end":{"finished":false}})");
  EXPECT_EQ(view()["runs"][0]["state"], "stopped");
  append(R"({"step":3,"start":{"time":"T"}})");
  log_steps(4, 100);
  append(R"({"step":100,"end":{"finished":true}})");
  const Json run = view()["runs"][0];
  EXPECT_EQ(run["state"], "finished");
  std::vector<std::string> kinds;
  for (const Json& event : run["events"]) kinds.push_back(event["kind"]);
  EXPECT_EQ(kinds, (std::vector<std::string>{"start", "end", "resume", "end"}));
}

TEST_F(ViewTest, ARunThatIsRemovedStaysOnThePage) {
  log_steps(1, 5);
  const Json before = view();
  const uint64_t revision = runs_[0]->revision();
  std::filesystem::remove_all(folder_.path());
  const Json after = view()["runs"][0];
  EXPECT_EQ(after["state"], "interrupted");
  EXPECT_EQ(after["series"]["loss"]["step"].size(), 5u);
  EXPECT_GT(runs_[0]->revision(), revision);
}

TEST_F(ViewTest, DamagedFilesOfARunAreNoReasonToFail) {
  write_file(folder_ / "panels.json", "{\"panels\":[{\"kind\":\"lines\"},3,{\"id\":1}]}");
  log_steps(1, 5);
  EXPECT_EQ(view()["runs"][0]["panels"][0]["id"], "loss");  // those of the settings
  write_file(folder_ / "config.toml", "[model\n");
  const Json run = view()["runs"][0];
  EXPECT_EQ(run["series"]["loss"]["step"].size(), 5u);
  EXPECT_EQ(run["header"][0]["label"], "Problem");
}

// 100,000 steps, each logged, with the health of 100 tensors, as JSON in a page.
TEST_F(ViewTest, AReportOfALongRunIsOneFileOfLessThanAMegabyte) {
  log_steps(1, 100'000);
  std::string line = R"("health":{)";
  for (int i = 0; i < 100; ++i) {
    line += fmt::format(R"({}"h.{}.attn.weight":{{"norm":0.0123456789,"mean":1e-9,"largest":0.5,"zeros":0.25,)"
                        R"("update_ratio":0.00123456789}})",
                        i == 0 ? "" : ",", i);
  }
  for (int step = 100; step <= 100'000; step += 100) append(fmt::format(R"({{"step":{},{}}}}})", step, line));
  for (int step = 250; step <= 100'000; step += 250) {
    append(fmt::format(R"({{"step":{},"sample":{{"prompt":"p","text":"{}"}}}})", step, std::string(300, '<')));
  }
  const std::string html = static_report({.runs = {folder_.path()}, .version = "1"});
  EXPECT_LT(html.size(), 1'000'000u);
  const size_t begin = html.find("id=\"data\">") + 10;
  const Json data = parse_json(std::string_view(html).substr(begin, html.find("</script>", begin) - begin));
  ASSERT_TRUE(data.is_object());
  EXPECT_GE(data["runs"][0]["series"]["loss"]["step"].size(), 500u);
  EXPECT_GE(data["runs"][0]["heatmaps"]["health"]["step"].size(), 5u);
}

TEST_F(ViewTest, TextCannotLeaveItsPlaceInAReport) {
  append(
      R"({"step":1,"sample":{"prompt":"</script><!-- script -->","text":"<!-- data --><script>alert(1)</script>"}})");
  const std::string html = static_report({.runs = {folder_.path()}, .version = "1"});
  EXPECT_EQ(html.find("alert(1)</script>"), std::string::npos);
  const size_t begin = html.find("id=\"data\">") + 10;
  const Json data = parse_json(std::string_view(html).substr(begin, html.find("</script>", begin) - begin));
  EXPECT_EQ(data["runs"][0]["texts"]["sample"][0]["text"], "<!-- data --><script>alert(1)</script>");
}

TEST_F(ViewTest, KnowsItsReports) {
  write_file(folder_ / "a.html", static_report({.runs = {folder_.path()}, .version = "1"}));
  write_file(folder_ / "b.html", "<html>");
  EXPECT_TRUE(is_static_report(folder_ / "a.html"));
  EXPECT_FALSE(is_static_report(folder_ / "b.html"));
  EXPECT_FALSE(is_static_report(folder_ / "none.html"));
}

TEST(DashboardPage, IsOneDocumentThatLoadsNothing) {
  const std::string html = page_html();
  EXPECT_TRUE(html.starts_with("<!doctype html>"));
  EXPECT_EQ(html.find("id=\"data\""), std::string::npos);
  for (const char* text : {"<!-- style -->", "<!-- script -->", "<!-- data -->", "src=\"", "href=\"http", "@import"}) {
    EXPECT_EQ(html.find(text), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace quern::dashboard
