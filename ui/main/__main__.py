"""`python -m ui.main`: open the window."""

import sys

from ui.main import main

if __name__ == "__main__":
    sys.exit(main())
