"""What ``run.py --help`` prints. Plain text, so that it comes at once."""

from __future__ import annotations

HELP = """\
medtest tests medical-imaging AI the metamorphic way: it changes images as the clinic does (light, blur,
instruments, text on the screen) and counts how often the system under test changes its mind.

Usage: {command} suite=NAME [KEY=VALUE …] [-m]

Start here:
  {command} suite=polyp_seg limit=2           a minute: two compact networks on two made images
  {command} suite=polyp_seg plan=true         what would run, how long, and how sure it can be
  {command} suite=polyp_seg model=ssformer    one system under one suite
  {command} suite=polyp_seg_folder data=PATH model=[pranet,ssformer]
                                                   your own images and masks
  medtest list suites                              what there is (relations, systems, seeds, oracles too)
  medtest sheet suite=polyp_seg                    see what the relations do, before you run

Your network:
  model=ssformer checkpoint=FILE                   a published network with your weights
  model=huggingface|monai|smp path=FOLDER          networks of transformers, MONAI, segmentation_models_pytorch
  model=onnx path=FILE.onnx | model=torchscript path=FILE.pt
  model=callable target=package.module:function    any Python function: images in, masks out
  model=predictions folder=DIR                     masks made elsewhere (medtest export writes the follow-ups)
  model=command command='TOOL {{input}} {{output}}'  a program, image in, image or region out (suite=denoising, liver)
  KEY=VALUE                                        any setting of the system (medtest list systems shows them)
  systems.ssformer.checkpoint=FILE                 with several systems
  model=openai_compatible base_url=URL model_name=NAME send_images=true   a model over an API
  "+systems.v2={{use: ssformer, checkpoint: FILE}}"  a second checkpoint of one network
  name=v2                                          what your system is called; without it, as its file
  --config-dir DIR                                 your own DIR/model/*.yaml

What to run:
  limit=N                      the first N seeds of each data set
  only=relation:blur           a part: relation:ID, severity:N, dataset:ID, seed:ID, question:ID, joined by commas
  relations=[blur,text]        exactly these        ~relations.text      all but this
  relations.blur.severities=[1,3]   seeds.phantoms.count=100   oracles.primary.threshold=0.5   prepare.size=native
  suite_dir=DIR                a folder of your own suites (or suite=path/to/suite.yaml)

How to run it (changes no result):
  device=auto|cpu|cuda:N  workers=N  threads=N  batch_size=N  batch_seconds=N  quiet=true
  reference=SYSTEM             classifiers: whose flip probability the others' are divided by (a name, or a folder)
  followups=store              take follow-ups that "medtest followups make" kept
  budget.max_usd=N  budget.max_calls=N   what a model over an API may cost; exit code 5, and raised it goes on
  cache=use|refresh|off        answers that other runs got to the same question about the same pixels
  judge.use=gpt_4o             a model that reads answers which medtest cannot; judge.max_usd=N  judge.max_calls=N
  fresh=true                   move earlier results aside; without it, finished cases are not run again
  track=false                  no MLflow      privacy.seed_ids=hashed   privacy.images=none

Several runs (Hydra's multirun):
  -m model=pranet,ssformer     one job each
  -m 'suite=glob(*)'           every suite
  -m oracles.primary.threshold=0.25,0.5            runs no system again

Results lie in outputs/<suite>/<system>/<digest>/ (report.html, tables/, records.parquet); make ui opens MLflow.
Exit codes: 0 fine, 1 a gate was not held, 2 a mistake in what was typed or in a suite, 3 too many cases in error,
4 not tracked, 5 a budget or a server's own limit was reached, 130 interrupted, 70 a defect of medtest.
--hydra-help, --cfg job, --info and shell completion (-sc) are Hydra's own.
"""


def help_text(command: str) -> str:
    """Return the help for a command as it is called: ``python run.py`` or ``medtest run``."""
    return HELP.format(command=command)
