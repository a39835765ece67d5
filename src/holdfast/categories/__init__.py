"""Which columns predict, and which only remember? (Sabato & Shalev-Shwartz 2008)."""
