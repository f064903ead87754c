"""What an event costs on DynamoDB, counted in units, and what that comes to in dollars."""
