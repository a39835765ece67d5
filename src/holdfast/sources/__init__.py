"""Which trained models help a new task? (Kuzborskij, Orabona & Caputo 2017)."""
