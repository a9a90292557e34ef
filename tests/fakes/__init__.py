"""Stand-ins that implement our ports or speak a vendor's wire; each module says for whom."""
