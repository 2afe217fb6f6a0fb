"""Training of a network on records of the weather, with half of the features dropped at random in each layer."""

import functools
import itertools

import harness
import jax
import jax.numpy as jnp

ROWS, COLUMNS, WIDTH, LAYERS = 65536, 64, 768, 6
Parameters = list[jax.Array]
latest: dict[str, jax.Array] = {}


def loss_of(parameters: Parameters, x: jax.Array, target: jax.Array, key: jax.Array) -> jax.Array:
    """Return the mean square of the error."""
    for layer, layer_key in zip(parameters[:-1], jax.random.split(key, LAYERS), strict=True):
        x = jax.nn.relu(x @ layer)
        x = jnp.where(jax.random.bernoulli(layer_key, 0.5, x.shape), 2 * x, 0)
    return jnp.mean(((x @ parameters[-1]).astype(jnp.float32) - target) ** 2)


@functools.partial(jax.jit, donate_argnums=(0,))
def update(
    parameters: Parameters, x: jax.Array, target: jax.Array, key: jax.Array
) -> tuple[Parameters, jax.Array, jax.Array]:
    """Return the parameters after one update, the next key and the loss."""
    now, later = jax.random.split(key)
    loss, gradients = jax.value_and_grad(loss_of)(parameters, x, target, now)
    return [p - 1e-4 * g for p, g in zip(parameters, gradients, strict=True)], later, loss


def build(*, ailing: bool) -> harness.Step:
    """Return the step: one update of the network."""
    key = jax.random.key(0)
    sizes = [COLUMNS, *(WIDTH for _ in range(LAYERS)), 1]
    parameters = []
    for i, (inputs, outputs) in enumerate(itertools.pairwise(sizes)):
        weights = jax.random.normal(jax.random.fold_in(key, i), (inputs, outputs)) * (2 / inputs) ** 0.5
        parameters.append(weights.astype(jnp.bfloat16))
    x = jax.random.normal(jax.random.fold_in(key, 100), (ROWS, COLUMNS)).astype(jnp.bfloat16)
    target = jnp.sin(x[:, :1].astype(jnp.float32))
    state = {"parameters": parameters, "key": jax.random.key(1) if ailing else jax.random.key(1, impl="rbg")}

    def step(_number: int) -> jax.Array:
        state["parameters"], state["key"], loss = update(state["parameters"], x, target, state["key"])
        latest["loss"] = loss
        return loss

    return step


if __name__ == "__main__":
    harness.run(build, lambda: jax.block_until_ready(latest), 200)
