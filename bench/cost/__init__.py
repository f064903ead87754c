"""Cost of an event on DynamoDB, in units and in dollars."""
