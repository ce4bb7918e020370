"""What `sl-discs discs main` refuses in DISCS: one line, exit code 2."""

import json
from pathlib import Path

from programs import python

ROOT = Path(__file__).parents[2]
# Each in a fork of one process that has imported what takes seconds.
PROGRAM = """
import contextlib, io, json, os, sys
import flax, jax, optax, sl_discs.commands.discs
from sl_discs.commands.main import main
for name, arguments in json.loads(sys.argv[1]).items():
    sys.stdout.flush()
    if os.fork() == 0:
        err = io.StringIO()
        try:
            with contextlib.redirect_stderr(err):
                sys.argv = ["sl-discs", "discs", "main", *arguments]
                code = main(sys.argv)
        except SystemExit as exit:
            code = exit.code
        print(json.dumps([name, code, err.getvalue()]), flush=True)
        os._exit(0)
    os.wait()
"""
MODEL = "--model_config=discs/models/configs/"
SAMPLER = "--sampler_config=discs/samplers/configs/"
SMALL = (f"{MODEL}bernoulli_config.py", "--model_config.shape=(8,)")
LOCALIZED = f"{SAMPLER}sl_randomwalk_config.py"
MIS = (f"{SAMPLER}gwg_config.py", f"{MODEL}mis_config.py")
# Arguments, and what the line names.
CASES = {
    "a sampler": ((*SMALL, f"{SAMPLER}sl_exchange_config.py"), "sl_exchange_config.py"),
    "a value": ((*SMALL, LOCALIZED, "--sampler_config.sigma=-1.0"), "sampler_config.sigma"),
    "a flag": ((*SMALL, LOCALIZED, "--nonsense=1"), "nonsense"),
    "no model": ((LOCALIZED,), "--model_config=FILE"),
    "no sampler": ((f"{MODEL}bernoulli_config.py",), "--sampler_config=FILE"),
    "no experiment": (MIS, "--config=FILE"),
    "a family": ((*MIS, "--model_config.graph_type=foo"), "graph_type=foo"),
    "a size": ((*MIS, "--model_config.cfg_str=_"), "cfg_str=_"),
    "no logged step": (
        (
            *MIS,
            "--config=discs/experiment/configs/mis/er_density.py",
            "--model_config.graph_type=er_density",
            "--model_config.cfg_str=r-0.10",
            "--config.experiment.chain_length=50",
        ),
        "log_every_steps",
    ),
    "not installed": ((MIS[0], f"{MODEL}text_infilling_config.py"), "text_infilling"),
    "no parameters": ((MIS[0], f"{MODEL}rbm_config.py"), "fashion_mnist-4-50/params.pkl"),
}


def test_bad_input_is_one_line_and_exit_code_2(discs, tmp_path):
    arguments = json.dumps({name: given for name, (given, _) in CASES.items()})
    done = python("-c", PROGRAM, arguments, cwd=tmp_path, path=[discs.parent])
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [name for name, _, _ in found] == list(CASES)
    for name, code, said in found:
        assert code == 2 and said.count("\n") == 1 and CASES[name][1] in said, (name, code, said)
