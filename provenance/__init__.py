"""How gains came to be: first stage, pool, judge answers, abilities, 2PL, gains, runs.

Pure cores over data frames and arrays. This room knows nothing of `builder` and `releases`.
"""
