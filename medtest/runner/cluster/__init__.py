"""Workers on the nodes of a Ray cluster: the local worker process, hosted by an actor.

Three processes take part. The process of the run decides and writes as usual; it never imports Ray. A *bridge*
(:mod:`medtest.runner.cluster.bridge`), its child process, is Ray's driver, so that a failing cluster head ends only the
bridge, and the run starts another one to rejoin the cluster (:mod:`medtest.runner.cluster.connection`). On each node an
actor (:mod:`medtest.runner.cluster.host`) starts the worker process and relays messages in both directions.
"""
