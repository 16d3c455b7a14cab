"""How Interlace behaves when there is much of it: many nodes, many domains, wide domains, long churn, races.

``python -m bench.scale SUBJECT`` measures one of them on hollow (simulated) nodes and keeps the figures in
``bench/results/scale-SUBJECT.json``; ``report`` writes docs/scale.md from what is kept.
"""
