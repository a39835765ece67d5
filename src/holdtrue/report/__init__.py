"""From numbers to what people look at."""
