"""``python -m spngp``."""

from spngp.cli import main

if __name__ == "__main__":
    main()
