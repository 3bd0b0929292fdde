"""`python -m vidpipe` is the console script `vidpipe`."""

from vidpipe.cli.app import main

if __name__ == "__main__":
    main()
