"""Really trained labelled runs: tiny models of many kinds, with and without a fault, written as other tools log them."""
