"""Errors of DISCS's samplers, because of which they do not sample from their target, and a fix for
each.

By default a wrapped sampler does exactly what DISCS's does. With `register(fixes=True)` each
sampler gets the fixes that concern it.

- Scale of a chain (dmala, dlmc): the step size is computed from all chains of a batch, at x and
  again at y, although each chain is accepted separately; it also overflows at low temperatures.
  Fixed: it is computed from the chain's own rates, in log space.
- First scale (dmala, dlmc; adaptive, not combinatorial): the first step size is not stored, and low
  acceptance makes the next one NaN. Fixed: it is stored, and is at least one flip.
- Probability of a path (path_auxiliary): the probability of a path is clipped to 1 if the remaining
  mass is below float32 resolution. With several values and a fixed number of flips, it lacks the
  probability of the new values, although the reverse path has that of the old ones. Fixed: the mass
  is summed rather than obtained by subtraction, and the new values count.
- Own proposal (gwg, several values): the probability of a chain's proposal is multiplied by those
  that it gives to the proposals of all other chains of the batch. Fixed: it is that of the chain's
  own proposal.
- Uniform ball (hammingball): the intermediate state is drawn from the ball around the first state
  with counts in place of their logarithms, so it is not uniform, as detailed balance requires.
  Fixed: it is uniform.
- Mask (dmala, dlmc, randomwalk, hammingball, blockgibbs, gibbs, and gwg with several values): the
  mask is ignored. Fixed: excluded sites do not change.
- Float states (all, two values): a model computes with integers if the sampler uses integers, and
  the couplings of DISCS's Ising model are truncated to whole numbers. Fixed: models get floats.
"""

from __future__ import annotations

import math
import types
from typing import Any

import jax
import jax.numpy as jnp


def mend(name: str, sampler: Any) -> None:
    """Replaces methods of one sampler object; `AdaptedModel` respects the mask and gives floats to
    models.
    """

    def replace(method, function):
        setattr(sampler, method, types.MethodType(function, sampler))

    if name in ("dmala", "dlmc"):
        replace("reset_stats", _scale_of_each_chain)
        replace("update_sampler_state", _with_first_scale(sampler.update_sampler_state))
    if name == "path_auxiliary":
        replace("proposal", _propose_path)
        replace("ll_y2x", _reverse_path)
    if name == "gwg" and sampler.num_categories > 2:
        replace("get_ll_onestep", _log_prob_of_own)
    if name == "hammingball":
        sampler.hamming_logit = jnp.log(sampler.hamming_logit)


def _scale_of_each_chain(sampler, log_rates):
    """Returns log n - log sum_i rate_i, of each chain if the scale follows the state, else of the
    batch.
    """
    flat = log_rates.reshape(log_rates.shape[0], -1)
    log_z = jax.nn.logsumexp(flat, axis=1)
    if sampler.adaptive and sampler.co_opt_prob:
        log_z = log_z.reshape(-1, *(1,) * (log_rates.ndim - 1))
    else:
        log_z = jax.nn.logsumexp(log_z) - math.log(flat.shape[0])
    return {"log_tau": math.log(getattr(sampler, "n", 3.0)) - log_z, "log_z": log_z}


def _with_first_scale(update):
    """Returns the sampler's own update, made to start from the scale of the first step and to stay
    finite.
    """

    def updated(sampler, state, acc, local_stats):
        adapts = sampler.adaptive and not sampler.co_opt_prob
        if adapts:  # the step has been counted when this is called
            state["log_tau"] = jnp.where(
                state["steps"] == 1, local_stats["log_tau"], state["log_tau"]
            )
        update(state, acc, local_stats)
        if adapts:  # the logarithm of a negative number of flips; one flip is the least
            state["log_tau"] = jnp.where(
                jnp.isnan(state["log_tau"]), -state["log_z"], state["log_tau"]
            )

    return updated


def _log_prob_in_order(log_prob, order, length):
    """Returns the log-probability of drawing the first `length` sites of `order` in turn, without
    replacement.

    The mass remaining at a draw is summed over the later sites rather than subtracted from one, to
    avoid cancellation.
    """
    ordered = jnp.take_along_axis(log_prob, order, axis=-1)
    left = jax.lax.cumlogsumexp(ordered, axis=1, reverse=True)
    drawn = jnp.arange(log_prob.shape[1]) < length
    return jnp.sum(jnp.where(drawn, ordered - left, 0.0), axis=-1)


def _propose_path(sampler, model, rng, x, model_param, state, x_mask):
    """Draws sites in the order of their perturbed log-probabilities, which flip or get values drawn
    by theirs.
    """
    ll_x, log_prob, calls = sampler.get_local_dist(model, x, model_param, x_mask)
    log_sites, log_values = _sites_and_values(sampler, log_prob)
    size = log_sites.shape[1]
    if sampler.adaptive:
        length = jnp.clip(jnp.round(state["radius"]).astype(jnp.int32), 1, size)
    else:
        length = sampler.num_flips
    key_sites, key_values = jax.random.split(rng)
    order = jnp.argsort(-(log_sites + jax.random.gumbel(key_sites, log_sites.shape)), axis=-1)
    changes = jnp.argsort(order, axis=-1) < length
    if log_values is None:
        y = jnp.where(changes.reshape(x.shape), 1 - x, x)
    else:
        drawn = jax.nn.one_hot(
            jax.random.categorical(key_values, log_values), sampler.num_categories
        )
        y = jnp.where(changes.reshape(*x.shape[:-1], 1), drawn.reshape(x.shape), x)
    ll_x2y = _log_prob_in_order(log_sites, order, length) + _log_prob_of_values(
        log_values, y, changes
    )
    return ll_x, y, {"ll_x2y": ll_x2y, "order": order, "length": length, "changes": changes}, calls


def _reverse_path(sampler, model, x, model_param, path, y, x_mask):
    """Evaluates the same sites at y in reverse order, followed by all others, and the old
    values.
    """
    ll_y, log_prob, calls = sampler.get_local_dist(model, y, model_param, x_mask)
    log_sites, log_values = _sites_and_values(sampler, log_prob)
    index = jnp.arange(log_sites.shape[1])
    backwards = jnp.where(index < path["length"], path["length"] - 1 - index, index)
    order = jnp.take(path["order"], backwards, axis=1)
    ll_y2x = _log_prob_in_order(log_sites, order, path["length"])
    return ll_y, ll_y2x + _log_prob_of_values(log_values, x, path["changes"]), calls


def _sites_and_values(sampler, log_prob):
    """Returns log-probabilities [B, N] of sites, and [B, N, q] of new values, given the site; None
    if q = 2.
    """
    if sampler.num_categories == 2:
        return log_prob, None
    of_both = log_prob.reshape(log_prob.shape[0], -1, sampler.num_categories)
    of_sites = jax.nn.logsumexp(of_both, axis=-1)
    return of_sites, of_both - of_sites[..., None]


def _log_prob_of_values(log_values, one_hot, changes):
    """Returns the log-probability that the sites that change get the values of `one_hot`."""
    if log_values is None:
        return 0.0
    chosen = (one_hot.reshape(log_values.shape) > 0) & changes[..., None]
    return jnp.sum(jnp.where(chosen, log_values, 0.0), axis=(1, 2))


def _log_prob_of_own(sampler, dist, aux, src_to_dst):
    """Returns the log-probability of each chain's own pair of site and value."""
    return jnp.take_along_axis(dist, aux[src_to_dst][:, None], axis=1)[:, 0]
