"""The human study: people judge whether follow-ups keep the diagnosis and could occur (MedTest report, 3.1 and RQ1).

``make`` draws items and writes a folder, ``serve`` shows them to annotators in a browser, ``report`` turns their
answers into means, agreement and a list of follow-ups for a second look.
"""
