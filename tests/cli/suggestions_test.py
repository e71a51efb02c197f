"""What people type by reflex works, or the error says what to type instead."""

import program


class Suggestions(program.ProgramTest):
    def suggests(self, cases):
        for words, says in cases:
            with self.subTest(words=words):
                self.fails(*words.split(), says=[says])

    def test_commands(self):
        self.suggests((
            ("trian", "unknown command 'trian'; did you mean train?"),
            ("sample", "did you mean generate?"),
            ("evaluate", "did you mean eval?"),
            ("tokenise", "did you mean tokenize?"),
            ("benchmark", "did you mean bench?"),
            ("bench kernel", "unknown command 'kernel'; did you mean kernels?"),
            ("help", "did you mean --help?"),
            ("frobnicate", "unknown command 'frobnicate'; run `quern --help`"),
            ("generate run more", "unexpected argument 'more'; run `quern generate --help`"),
        ))

    def test_flags(self):
        self.suggests((
            ("train --stpes 5", "unknown flag '--stpes'; did you mean --steps?"),
            ("train -rate 5", "did you mean --rate?"),
            ("train --lerning-rate 5", "did you mean --learning-rate?"),
            ("train --max-iters 5", "did you mean --steps?"),
            ("train --n_layer 5", "did you mean --layers?"),
            ("train --n-head=5", "did you mean --heads?"),
            ("train --d-model 5", "did you mean --width?"),
            ("train --block-size 5", "did you mean --context?"),
            ("train --gradient-accumulation-steps 5", "did you mean --accumulation?"),
            ("train --dtype bf16", "did you mean --precision?"),
            ("train --weight-decay 0", "did you mean --set optimizer.weight_decay=VALUE?"),
            ("train --wd 0", "did you mean --set optimizer.weight_decay=VALUE?"),
            ("train --warmup-steps 0", "did you mean --set optimizer.warmup=VALUE?"),
            ("train --eval-interval 0", "did you mean --set train.validation_interval=VALUE?"),
            ("train --vocab-size 0", "did you mean --set data.vocabulary=VALUE?"),
            ("train --epochs 3", "did you mean --steps? one epoch takes (tokens of text) / (batch x context) steps"),
            ("train --device cuda", "unknown flag '--device'; Quern runs on CPUs"),
            ("train -o runs/x", "did you mean --run?"),
            ("train --out_dir runs/x", "did you mean --run?"),
            ("tokenize a.txt --output x", "did you mean --out?"),
            ("generate run --max-tokens 3", "did you mean --tokens?"),
            ("generate run -n 3", "did you mean --tokens?"),
            ("generate run --num_return_sequences 3", "did you mean --samples?"),
            ("generate run --minp 0.1", "did you mean --min-p?"),
            ("generate run --repetition_penalty 1.1", "did you mean --repeat-penalty?"),
            ("generate run --repeat-last-n 64", "did you mean --repeat-window?"),
            ("generate run --reverse-prompt User:", "did you mean --stop?"),
            ("generate run --steps 3", "did you mean `quern train --steps`?"),
            ("generate run --cuda", "Quern runs on CPUs"),
            ("train --temperature 1", "did you mean `quern generate --temperature`?"),
            ("bench kernels --filtr gemm", "did you mean --filter?"),
            ("train --frobnicate", "unknown flag '--frobnicate'; run `quern train --help`"),
        ))

    def test_settings(self):
        for setting, says in (("lr", "optimizer.rate"), ("learning_rate", "optimizer.rate"), ("Learning-Rate", "optimizer.rate"),
                              ("optimizer.lr", "optimizer.rate"), ("train.rate", "optimizer.rate"),
                              ("n_embd", "model.width"), ("ctx", "model.context"), ("batch_size", "train.batch"),
                              ("max_steps", "train.steps"), ("stpes", "train.steps"), ("train.stepz", "train.steps"),
                              ("learing_rate", "optimizer.rate"), ("grad_clip", "optimizer.clip")):
            with self.subTest(setting=setting):
                says = [f"found '{setting}'; did you mean {says}?"]
                self.fails("train", "--set", f"{setting}=1", says=says)
                self.fails("train", "--config", self.write("a.toml", f"{setting} = 1\n"), says=says)
        self.fails("train", "--config", self.write("a.toml", "lr = 1\n"), says=["a.toml:1:1", "did you mean optimizer.rate?"])
        self.fails("train", "--config", self.write("a.toml", "[train]\nepochs = 1\n"),
                   says=["a.toml:2:1", "did you mean train.steps? one epoch takes"])
        self.fails("train", "--set", "device=cuda", says=["found 'device'; Quern runs on CPUs"])
        self.fails("train", "--set", "frobnicate=1", says=["`quern train --print-config` lists them"])

    def test_values(self):
        self.suggests((
            ("train --preset smal", "expected tiny, small, gpt2, minute, ten-minutes, llama-tiny or llama-small, found 'smal'; did you mean small?"),
            ("train --preset gpt-2", "did you mean gpt2?"),
            ("train --precision float32", "expected fp32, bf16 or fp16, found 'float32'; did you mean fp32?"),
            ("train --precision BF16", "did you mean bf16?"),
            ("train --precision fp23", "did you mean fp32?"),
            ("train --tokenizer character", "did you mean char?"),
            ("train --recompute everylayer", "did you mean every-layer?"),
            ("train --set optimizer.schedule=cos", "did you mean cosine?"),
            ("train --set log.tensorboard=yes", "expected true or false, found 'yes'; did you mean true?"),
            ("train --set log.tensorboard=True", "did you mean true?"),
            ("tokenize a.txt --kind bytes", "--kind: expected byte, char or bpe, found 'bytes'; did you mean byte?"),
            ("bench train --preset smal", "--preset: expected tiny, small, gpt2, llama-tiny or llama-small, found 'smal'; did you mean small?"),
        ))

    def test_aliases_work(self):
        printed = self.works("train", "--print-config", "--rate", "0.5", "--batch", "7")
        for rate in ("--lr", "--learning-rate", "--learning_rate"):
            for batch in ("--batch-size", "--batch_size"):
                self.assertEqual(self.works("train", "--print-config", rate, "0.5", batch, "7"), printed)
        self.assertIn("rate = 0.25\n", self.works("train", "--print-config", "--rate", "0.5", "--lr", "0.25"))
        self.train("run", "--steps", "2")
        text = self.works("generate", self.path("run"), "--tokens", "9", "--temperature", "0.5", "--top-k", "3")
        self.assertEqual(self.works("generate", self.path("run"), "--max_new_tokens", "9", "--temp", "0.5", "--top_k", "3",
                                    "--num-samples", "1"), text)

    def test_the_help_shows_aliases_once(self):
        printed = self.works("train", "--help")
        self.assertEqual(printed.count("--lr"), 1)
        self.assertIn("(or --lr, --learning-rate)", printed)
        self.assertNotIn("learning_rate", printed)
        self.assertIn("--max-new-tokens", self.works("generate", "--help"))


if __name__ == "__main__":
    program.main()
