# What developers do, by name. `just` alone lists it.
_default:
    @just --list

# Lint, types, tests
check:
    ruff check .
    ruff format --check .
    mypy
    pytest

# Let ruff mend what it can
fix:
    ruff check --fix .
    ruff format .

# Rewrite the documents that are generated from the model
docs:
    python docs/generate.py

# Build the documents as a site, in build/site
site:
    python docs/generate.py build/pages
    zensical build --clean --strict

# Write the goldens that changed; review them with git diff
golden:
    pytest -n 0 tests/test_goldens.py --golden

# Resolve the packages that CI installs, with their hashes; needs uv. `just lock --upgrade` takes newer versions
lock *flags:
    requirements/lock {{flags}}

# Break traces for some minutes and see what they break; see docs/evidence/reliability.md
fuzz minutes="10" seed="0":
    python tests/fuzz/run.py --minutes {{minutes}} --seed {{seed}} --jobs {{num_cpus()}}

# Run commands on a machine that fails them: many at once, killed, no room, a trace that changes
faults times="50":
    python tests/faults/run.py --times {{times}}

# Measure against sqlite3 (and nsys, where it is) on a big tiled trace; see docs/evidence/performance.md
bench:
    python benchmarks/measure.py
