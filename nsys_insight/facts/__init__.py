"""What takes work to find and several reports need, found once for a connection: steps, gaps, idle time, chains."""
