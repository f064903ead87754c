"""The accountant finds what it is there to find: one event in each class, put there by hand."""

from tests.torture.accountant import Account, Class, ConsumerBook, Origin, ProducerBook, Received, close


def books(sent: int) -> tuple[ProducerBook, ConsumerBook]:
    """A producer of acme that sent so many events, and a consumer who has read none."""
    producer = ProducerBook("acme", 1, tried=sent, accepted={f"e{number}": number for number in range(sent)})
    return producer, ConsumerBook("acme")


def read(consumer: ConsumerBook, *numbers: int, tenant: str = "acme") -> None:
    consumer.received += [Received(f"e{number}", Origin(tenant, 1, number, rank=number)) for number in numbers]


def classes(producer: ProducerBook, *consumers: ConsumerBook, status: str | None = None) -> dict[Class, int]:
    account = close([producer], consumers, lambda _tenant, _event_id: status)
    everything = {*producer.accepted, *(each.event_id for book in consumers for each in book.received)}
    assert sorted(each for members in account.classes.values() for each in members) == sorted(everything)
    return {each: len(members) for each, members in account.classes.items() if members}


def test_what_was_read_once_and_in_order_is_fine() -> None:
    producer, consumer = books(3)
    read(consumer, 0, 1, 2)
    account = close([producer], [consumer], lambda _tenant, _event_id: None)
    assert account.wrong == {}
    assert account.figures()["accepted"] == account.figures()["delivered once"] == 3


def test_an_event_in_two_answers_is_duplicated_whoever_read_them() -> None:
    producer, one = books(2)
    other = ConsumerBook("acme")
    read(one, 0, 1)
    read(other, 1)
    assert classes(producer, one, other) == {Class.DELIVERED_ONCE: 1, Class.DUPLICATED: 1}


def test_an_event_under_two_ids_is_duplicated() -> None:
    producer, consumer = books(2)
    read(consumer, 0, 1)
    consumer.received.append(Received("copy", Origin("acme", 1, 1, rank=1)))
    assert classes(producer, consumer) == {Class.DELIVERED_ONCE: 1, Class.DUPLICATED: 2}


def test_an_event_that_nobody_knows_is_lost() -> None:
    producer, consumer = books(2)
    read(consumer, 0)
    consumer.at_risk = 1
    assert classes(producer, consumer) == {Class.DELIVERED_ONCE: 1, Class.LOST: 1}


def test_an_event_that_stays_behind_in_an_empty_inbox_is_lost() -> None:
    producer, consumer = books(1)
    consumer.at_risk = 1
    assert classes(producer, consumer, status="undelivered") == {Class.LOST: 1}


def test_a_delivered_event_that_nobody_read_is_lost_unless_an_answer_was() -> None:
    producer, consumer = books(1)
    assert classes(producer, consumer, status="delivered") == {Class.LOST: 1}
    consumer.at_risk = 1
    assert classes(producer, consumer, status="delivered") == {Class.UNREAD: 1}


def test_an_answer_that_was_lost_excuses_no_more_than_it_can_have_held() -> None:
    producer, consumer = books(5)
    consumer.at_risk = 2
    assert classes(producer, consumer, status="delivered") == {Class.UNREAD: 2, Class.LOST: 3}


def test_an_answer_lost_to_another_tenant_excuses_nothing() -> None:
    producer, consumer = books(1)
    assert classes(producer, consumer, ConsumerBook("globex", at_risk=1), status="delivered") == {Class.LOST: 1}


def test_another_tenants_event_is_foreign() -> None:
    producer, consumer = books(1)
    stranger = ConsumerBook("globex")
    read(stranger, 0)
    assert classes(producer, consumer, stranger) == {Class.FOREIGN: 1}


def test_an_event_that_was_never_sent_is_foreign() -> None:
    producer, consumer = books(1)
    read(consumer, 0, 7)
    assert classes(producer, consumer) == {Class.DELIVERED_ONCE: 1, Class.FOREIGN: 1}


def test_an_event_under_the_id_of_another_tenants_is_foreign() -> None:
    producer, _ = books(1)
    stranger = ConsumerBook("globex", [Received("e0", Origin("globex", 2, 0, rank=0))])
    account = close([producer, ProducerBook("globex", 2, tried=1)], [stranger], lambda _tenant, _event_id: None)
    assert account.wrong == {"foreign": ["e0"]}


def test_an_event_with_the_payload_of_another_is_foreign() -> None:
    producer, consumer = books(2)
    consumer.received += [Received("e0", Origin("acme", 1, 1, rank=1)), Received("e1", Origin("acme", 1, 0, rank=0))]
    assert classes(producer, consumer) == {Class.FOREIGN: 2}


def test_an_event_behind_a_later_one_of_its_producer_is_out_of_order() -> None:
    producer, consumer = books(3)
    read(consumer, 0, 2, 1)
    assert classes(producer, consumer) == {Class.DELIVERED_ONCE: 2, Class.OUT_OF_ORDER: 1}


def test_an_event_whose_producer_went_on_without_an_answer_has_no_place_in_the_order() -> None:
    producer, consumer = books(3)
    del producer.accepted["e1"]
    read(consumer, 0, 2, 1)
    assert classes(producer, consumer) == {Class.DELIVERED_ONCE: 3}
    producer.accepted = {"e1": 1}
    assert classes(producer, consumer) == {Class.DELIVERED_ONCE: 2, Class.OUT_OF_ORDER: 1}


def test_consumers_who_share_an_inbox_each_see_their_own_order() -> None:
    producer, one = books(3)
    other = ConsumerBook("acme")
    read(one, 2)
    read(other, 0, 1)
    assert classes(producer, one, other) == {Class.DELIVERED_ONCE: 3}


def test_an_event_whose_producer_got_no_answer_may_come_once() -> None:
    producer, consumer = books(1)
    del producer.accepted["e0"]
    read(consumer, 0)
    account: Account = close([producer], [consumer], lambda _tenant, _event_id: None)
    assert (account.unconfirmed, account.wrong) == (1, {})
    read(consumer, 0)
    assert classes(producer, consumer) == {Class.DUPLICATED: 1}
