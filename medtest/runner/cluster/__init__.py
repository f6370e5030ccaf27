"""Workers on the nodes of a Ray cluster: the same worker process as on this machine, hosted by an actor.

Three processes take part. The process of the run decides and writes, as ever; it never imports Ray. A *bridge*
(:mod:`medtest.runner.cluster.bridge`), a child of it, is Ray's driver, so that a cluster whose head dies takes the
bridge down and not the run, which starts another to join the cluster again (:mod:`medtest.runner.cluster.connection`).
On each node an actor (:mod:`medtest.runner.cluster.host`) starts the worker process, hands it what comes and gives back
what it says.
"""
