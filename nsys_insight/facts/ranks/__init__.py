"""Ranks: the collectives of several processes matched with each other, who came last to them, and what it did."""
