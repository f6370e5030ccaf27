"""Engine for counts, rates, differences and intervals, shared by all tables.

- :mod:`.axes`: data set, cell and cluster of cases; sums over cells and clusters; margins.
- :mod:`.resampling`: cluster draws shared by all figures of a table.
- :mod:`.rates`: rates with intervals over cells and pools.
- :mod:`.intervals`: intervals of single rates and differences.
- :mod:`.paired`: tests of paired cases, with correction for multiple tests.
"""
