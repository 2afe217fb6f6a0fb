"""Kriging of drill holes (a Gaussian process): fit and prediction for a range of correlation lengths, in JAX."""

import harness
import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve, solve_triangular

HOLES, SITES, NOISE = 4096, 512, 0.05

LAST: list[jax.Array] = []  # what the last step returned


def covariance(x: jax.Array, y: jax.Array, length: jax.Array) -> jax.Array:
    """Return the covariance of the values at two sets of sites."""
    squares = (x * x).sum(1)[:, None] + (y * y).sum(1)[None] - 2 * jnp.matmul(x, y.T, precision="highest")
    return jnp.exp(-0.5 * jnp.maximum(squares, 0) / length**2)


@jax.jit
def krige_inverse(x: jax.Array, grades: jax.Array, sites: jax.Array, length: jax.Array) -> tuple[jax.Array, ...]:
    """Return mean, variance and likelihood by the inverse of the covariance."""
    k = covariance(x, x, length) + NOISE * jnp.eye(HOLES)
    across = covariance(sites, x, length)
    inverse = jnp.linalg.inv(k)
    weights = inverse @ grades
    variance = 1 - ((across @ inverse) * across).sum(1)
    likelihood = -0.5 * grades @ weights - 0.5 * jnp.linalg.slogdet(k)[1]
    return across @ weights, variance, likelihood


@jax.jit
def krige_cholesky(x: jax.Array, grades: jax.Array, sites: jax.Array, length: jax.Array) -> tuple[jax.Array, ...]:
    """Return mean, variance and likelihood by the Cholesky factor of the covariance."""
    k = covariance(x, x, length) + NOISE * jnp.eye(HOLES)
    across = covariance(sites, x, length)
    factor = cho_factor(k, lower=True)
    weights = cho_solve(factor, grades)
    half = solve_triangular(factor[0], across.T, lower=True)
    variance = 1 - (half * half).sum(0)
    likelihood = -0.5 * grades @ weights - jnp.log(jnp.diag(factor[0])).sum()
    return across @ weights, variance, likelihood


def build(*, ailing: bool) -> harness.Step:
    """Return the step: one correlation length."""
    keys = jax.random.split(jax.random.key(0), 3)
    x, sites = jax.random.uniform(keys[0], (HOLES, 3)), jax.random.uniform(keys[1], (SITES, 3))
    grades = jax.random.normal(keys[2], (HOLES,))
    lengths = [jnp.asarray(0.05 + 0.01 * i) for i in range(8)]
    krige = krige_inverse if ailing else krige_cholesky

    def step(number: int) -> None:
        LAST[:] = krige(x, grades, sites, lengths[number % len(lengths)])

    return step


def wait() -> None:
    """Wait for the last step."""
    jax.block_until_ready(LAST)


if __name__ == "__main__":
    harness.run(build, wait)
