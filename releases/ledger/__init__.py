"""The ledgers of embedded benchmarks (`<benchmark>.jsonl`, kept in git) and the code that reads and extends them."""
