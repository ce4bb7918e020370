"""The records of a share of the instances: packed into bytes for another host, and joined with other shares."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from sl_discs.experiment.record import InstanceRecord, SamplerRecord

_ARRAYS = ("trajectory", "acceptance", "hops")
_PLAIN = ("chain_steps_per_s", "compile_s", "run_s", "engine", "final_is")


def pack_records(samplers: dict[str, SamplerRecord]) -> bytes:
    """All records in one compressed file, which preserves every number exactly."""
    arrays: dict[str, Any] = {}
    plain: dict[str, Any] = {}
    for number, (name, sampler) in enumerate(samplers.items()):
        arrays |= {f"{number}/{field}": getattr(sampler, field) for field in _ARRAYS}
        arrays[f"{number}/solutions"] = np.concatenate([instance.solution for instance in sampler.instances])
        plain[name] = {field: getattr(sampler, field) for field in _PLAIN}
        plain[name]["instances"] = [
            {
                field.name: getattr(instance, field.name)
                for field in dataclasses.fields(InstanceRecord)
                if field.name != "solution"
            }
            | {"size": len(instance.solution)}
            for instance in sampler.instances
        ]
    file = io.BytesIO()
    text = json.dumps(plain, default=lambda value: value.item())
    np.savez_compressed(file, plain=np.frombuffer(text.encode(), np.uint8), **arrays)
    return file.getvalue()


def unpack_records(content: bytes) -> dict[str, SamplerRecord]:
    """The records of `pack_records`."""
    samplers = {}
    with np.load(io.BytesIO(content), allow_pickle=False) as saved:
        for number, (name, plain) in enumerate(json.loads(saved["plain"].tobytes()).items()):
            instances = plain.pop("instances")
            ends = np.cumsum([instance.pop("size") for instance in instances])
            solutions = np.split(saved[f"{number}/solutions"], ends[:-1])
            samplers[name] = SamplerRecord(
                instances=[InstanceRecord(**one, solution=x) for one, x in zip(instances, solutions, strict=True)],
                **{field: saved[f"{number}/{field}"] for field in _ARRAYS},
                **plain,
            )
    return samplers


def join_records(shares: Sequence[dict[str, SamplerRecord]]) -> dict[str, SamplerRecord]:
    """One record per sampler, with instances in the order of the shares.

    Shares run in parallel: `run_s` and `compile_s` are those of the slowest share, and the rate counts all
      chain-steps
    in that time.
    """
    if len(shares) == 1:
        return shares[0]
    return {name: _join([share[name] for share in shares]) for name in shares[0]}


def _join(parts: list[SamplerRecord]) -> SamplerRecord:
    run_s = max(part.run_s for part in parts)
    engines = list(dict.fromkeys(part.engine for part in parts))
    return SamplerRecord(
        instances=[instance for part in parts for instance in part.instances],
        **{field: np.concatenate([getattr(part, field) for part in parts], axis=1) for field in _ARRAYS},
        chain_steps_per_s=sum(part.chain_steps_per_s * part.run_s for part in parts) / run_s,
        compile_s=max(part.compile_s for part in parts),
        run_s=run_s,
        engine="; ".join(engines),
        final_is=parts[0].final_is,
    )
