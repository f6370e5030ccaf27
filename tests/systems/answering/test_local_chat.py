"""A local vision-language checkpoint: equal to transformers' own pipeline, seeded, refused where unsafe."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_talkers import TEMPLATE, save_talker

from medtest.api.wire.likely import yes_or_no
from medtest.core.cases import Address, AnswerOutput, Ask
from medtest.core.errors import MedtestError
from medtest.systems.answering.asking import Asking
from medtest.systems.answering.local_chat import LocalChat, LocalChatSettings

YES_AND_NO = ("Yes", "No", "\u2581yes", "\u2581NO")
IMAGE = np.random.default_rng(0).integers(0, 255, (48, 64, 3), dtype=np.uint8)
DARK = np.zeros((48, 64, 3), np.uint8)


@pytest.fixture(scope="module")
def talker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_talker(tmp_path_factory.mktemp("talker"))


def open_system(folder: Path, **settings: Any) -> LocalChat:
    system = LocalChat("transformers", LocalChatSettings(path=str(folder), **{"max_tokens": 12, **settings}))
    assert system.check() == []
    system.open(device="cpu", threads=1)
    return system


def call(question: str = "How many polyps?", *, image: Any = IMAGE, seed: int = 1, together: bool = False) -> Asking:
    items = ("polyps", "text") if together else ("polyps",)
    asks = tuple(Ask(item=item, text=question, kind="count") for item in items)
    addresses = tuple(Address(dataset="d", seed_id="s", item=item) for item in items)
    return Asking(
        number=seed, label="l", addresses=addresses, image=image, sha256="", asks=asks, seed=seed, together=together
    )


def answers_of(system: LocalChat, *calls: Asking | None) -> list[AnswerOutput]:
    answers = [output for result in system.ask(iter(calls)) for output in result.outputs]
    return [answer for answer in answers if isinstance(answer, AnswerOutput)]


@pytest.mark.slow
def test_it_answers_as_the_pipeline_of_transformers(talker: Path) -> None:
    from PIL.Image import fromarray
    from transformers import pipeline

    system = open_system(talker, system_prompt="Be brief.")
    first, none, other = answers_of(system, call(), None, call(image=DARK), call("Is there text?"))
    pipe = pipeline("image-text-to-text", model=str(talker), device="cpu")
    for answer, image, question in (
        (first, IMAGE, "How many polyps?"),
        (none, DARK, "How many polyps?"),
        (other, IMAGE, "Is there text?"),
    ):
        messages = [
            {"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
            {
                "role": "user",
                "content": [{"type": "image", "image": fromarray(image)}, {"type": "text", "text": question}],
            },
        ]
        (reply,) = pipe(
            text=messages, generate_kwargs={"do_sample": False, "max_new_tokens": 12}, return_full_text=False
        )
        assert answer.text == reply["generated_text"].strip()
    assert len({first.text, none.text, other.text}) == 3
    (short,) = answers_of(open_system(talker, system_prompt="Be brief.", max_tokens=2), call())
    assert (short.state, short.completion_tokens) == ("length", 2)
    assert first.text.startswith(short.text)


def test_a_call_that_breaks_has_its_own_error() -> None:
    class Brittle:
        """Processor of a checkpoint that refuses every image."""

        def apply_chat_template(self, messages: Any, **options: Any) -> Any:
            image = messages[-1]["content"][0]["image"]
            raise ValueError("too dark" if not np.asarray(image).any() else "too bright")

    system = LocalChat("transformers", LocalChatSettings(path="unused"))
    system._processor = Brittle()
    outputs = [result.outputs for result in system.ask(iter([call(image=DARK), None, call()]))]
    assert outputs == [("too dark",), ("too bright",)]


@pytest.mark.slow
def test_the_likely_tokens_match_the_network_itself(tmp_path: Path) -> None:
    import torch
    from PIL.Image import fromarray
    from transformers import AutoModelForImageTextToText, AutoProcessor

    folder = save_talker(tmp_path, words=YES_AND_NO, louder=2.0)
    system = open_system(
        folder, system_prompt="", max_tokens=1, temperature=1.7
    )  # of which the log-probabilities are free
    processor, model = AutoProcessor.from_pretrained(folder), AutoModelForImageTextToText.from_pretrained(folder).eval()
    ids = dict(zip(YES_AND_NO, processor.tokenizer.convert_tokens_to_ids(list(YES_AND_NO)), strict=True))
    compared = 0
    questions = ("Is there a polyp?", "Is there blood?", "Is this clear?", "Any lesion?")
    for seed, question in enumerate(questions * 3):
        shown = np.random.default_rng(seed).integers(0, 255, (48, 64, 3), dtype=np.uint8)
        asking = call(question, image=shown, seed=seed)
        (answer,), (plain,) = answers_of(system, replace(asking, most_likely=20)), answers_of(system, asking)
        assert (answer.text, plain.likely) == (plain.text, ())
        if not any(sign.isalnum() for sign in answer.text):
            assert answer.likely == ()
            continue
        content = [{"type": "image", "image": fromarray(shown)}, {"type": "text", "text": question}]
        inputs = processor.apply_chat_template(
            [{"role": "user", "content": content}],
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            return_tensors="pt",
        )
        with torch.inference_mode():
            chances = torch.softmax(model(**inputs).logits[0, -1].double(), -1)
        highest = chances.topk(20)
        assert [token for token, _ in answer.likely] == processor.tokenizer.convert_ids_to_tokens(highest.indices)
        assert [value for _, value in answer.likely] == pytest.approx(highest.values.log().tolist(), abs=1e-4)
        yes, no = (sum(float(chances[ids[name]]) for name in YES_AND_NO[k::2]) for k in (0, 1))
        chance = yes_or_no(answer.likely)
        if chance is not None and yes + no > 0.3:
            compared += 1
            assert chance[0] == pytest.approx(yes / (yes + no), abs=0.02)  # of 20 tokens among 105
            assert chance[1] == pytest.approx(1 - yes - no, abs=0.02)
    assert compared >= 3


@pytest.mark.slow
def test_a_seed_decides_what_is_drawn(talker: Path) -> None:
    warm = open_system(talker, temperature=1.5)
    first, second, again = answers_of(warm, call(seed=1), call(seed=2), call(seed=1))
    assert first.text == again.text != second.text
    cold = open_system(talker)
    assert len({answer.text for answer in answers_of(cold, call(seed=1), call(seed=2))}) == 1
    fixed = open_system(talker, temperature=1.5, seed=4)
    assert len({answer.text for answer in answers_of(fixed, call(seed=1), call(seed=2))}) == 1


@pytest.mark.slow
def test_all_questions_in_one_call_share_its_tokens(talker: Path) -> None:
    answers = answers_of(open_system(talker), call(together=True))
    assert [answer.address.item for answer in answers] == ["polyps", "text"]
    assert sum(answer.completion_tokens or 0 for answer in answers) == 12


@pytest.mark.slow
@pytest.mark.parametrize(
    ("template", "form"),
    [
        (TEMPLATE, "_in_parts"),
        (TEMPLATE.replace("part['text']", "(part['text'] if message['role'] == 'user' else '')"), "_as_text"),
        (
            "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no') }}{% endif %}" + TEMPLATE,
            "_before_question",
        ),
        (TEMPLATE.replace("{{ message['content'] }}", ""), "_in_parts"),
    ],
)
def test_a_system_message_reaches_every_template(tmp_path: Path, template: str, form: str) -> None:
    assert open_system(save_talker(tmp_path, template=template))._form.__name__ == form


@pytest.mark.slow
@pytest.mark.parametrize("template", [None, "{{ 'hello' }}"])
def test_a_template_without_a_generation_prompt_is_refused(tmp_path: Path, template: str | None) -> None:
    with pytest.raises(MedtestError, match="chat template"):
        open_system(save_talker(tmp_path, template=template))


@pytest.mark.slow
def test_the_fingerprint_follows_weights_and_template(talker: Path, tmp_path: Path) -> None:
    def printed(folder: Path) -> dict[str, Any]:
        return LocalChat("t", LocalChatSettings(path=str(folder))).fingerprint()

    other = save_talker(tmp_path / "a")
    assert printed(other) == printed(talker)
    (other / "chat_template.jinja").write_text(TEMPLATE + " ")
    assert printed(other) != printed(talker)
    assert printed(save_talker(tmp_path / "b", seed=4)) != printed(talker)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "no config.json"),
        ({"config.json": '{"model_type": "llava"}'}, "holds no weights"),
        ({"config.json": '{"model_type": "llava"}', "pytorch_model.bin": "x"}, "not safetensors"),
        ({"config.json": '{"model_type": "x", "auto_map": {"AutoModel": "evil.M"}}'}, "auto_map"),
        ({"config.json": '{"model_type": "x", "text_config": {"auto_map": {}}}'}, "auto_map"),
        ({"config.json": '{"model_type": "llava"}', "model.safetensors": "x"}, "no processor"),
        (
            {
                "config.json": '{"model_type": "llava"}',
                "model.safetensors.index.json": json.dumps({"weight_map": {"a": "part-1.safetensors"}}),
            },
            "part-1.safetensors is missing",
        ),
    ],
)
def test_unsafe_folders_are_refused(tmp_path: Path, files: dict[str, str], words: str) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    (mistake,) = LocalChat("t", LocalChatSettings(path=str(tmp_path))).check()
    assert words in mistake.found
    assert LocalChat("t", LocalChatSettings()).check()[0].key == "path"


@pytest.mark.slow
def test_a_network_of_another_kind_and_missing_weights_are_one_message(tmp_path: Path) -> None:
    folder = save_talker(tmp_path)
    config = json.loads((folder / "config.json").read_text())
    config["text_config"]["num_hidden_layers"] = 3
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(MedtestError, match=r"9 weights .* not in the folder .*drawn at random"):
        open_system(folder)
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "bert"}))
    with pytest.raises(MedtestError, match=r"cannot make a network for questions about images"):
        open_system(folder)
