"""Prices in dollars, each with its source and date. Prices of AWS are for us-east-1."""

from dataclasses import dataclass

MILLION = 1_000_000
HOURS_PER_MONTH = 730


@dataclass(frozen=True)
class Price:
    dollars: float
    what: str
    source: str
    as_of: str


WRITES = Price(
    0.625,
    "a million DynamoDB write units, on demand",
    "https://airbyte.com/data-engineering-resources/dynamodb-pricing",
    "July 2025",
)
READS = Price(0.125, "a million read units, on demand", WRITES.source, WRITES.as_of)
STORAGE = Price(
    0.25, "a GB and month; the first 25 GB are free", "https://aws.amazon.com/dynamodb/pricing/", "an undated copy"
)
RECOVERY = Price(
    0.20,
    "a GB and month of point-in-time recovery, without the indexes",
    "https://finops.com.py/services/dynamodb/backups",
    "an undated copy",
)
PROVISIONED = Price(
    0.00065,
    "a provisioned write unit and hour",
    "https://zeonedge.com/en/blog/dynamodb-cost-optimization-on-demand-provisioned-dax-single-table",
    "an undated copy",
)
VCPU = Price(0.04048, "a vCPU and hour of Fargate", "https://www.wring.co/blog/aws-fargate-pricing-guide", "March 2026")
MEMORY = Price(0.004445, "a GB of memory and hour of Fargate", VCPU.source, VCPU.as_of)
LOAD_BALANCER = Price(
    0.0225,
    "an hour of an Application Load Balancer, without traffic",
    "https://cal53.calculator.city/aws-alb-cost-calculator/",
    "an undated copy",
)
SQS = Price(
    0.40,
    "a million requests of up to 64 KB to SQS; the first million a month is free",
    "https://cloudburn.io/blog/amazon-sqs-pricing",
    "March 2026",
)
SQS_FIFO = Price(0.50, "a million requests of up to 64 KB to a FIFO queue of SQS", SQS.source, SQS.as_of)
EVENTBRIDGE = Price(
    1.00, "a million custom events to EventBridge", "https://cloudburn.io/blog/amazon-eventbridge-pricing", "March 2026"
)
API_DESTINATION = Price(0.20, "a million events sent to an HTTP endpoint", EVENTBRIDGE.source, EVENTBRIDGE.as_of)
HOOKDECK = Price(
    39.00, "a month of Hookdeck Team with 10,000 events", "https://hookdeck.com/pricing", "20 September 2026"
)
HOOKDECK_EVENTS = Price(1.00, "100,000 further events", HOOKDECK.source, HOOKDECK.as_of)
HOOKDECK_MANY = Price(0.33, "100,000 further events, lowest price", HOOKDECK.source, HOOKDECK.as_of)
HOOKDECK_INCLUDED = 10_000
SVIX = Price(0.0001, "a message to Svix beyond 50,000 a month", "https://www.svix.com/pricing/", "20 September 2026")
SVIX_INCLUDED = 50_000

ALL = [each for each in globals().values() if isinstance(each, Price)]
