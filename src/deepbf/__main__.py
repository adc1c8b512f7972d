"""`python -m deepbf`: the same as the command `deepbf`."""

from __future__ import annotations

from deepbf.cli import app

if __name__ == "__main__":
    app(prog_name="deepbf")
