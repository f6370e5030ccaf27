"""Choice and drawing of pictures of cases for human inspection."""
