"""An agent of the published SDK 1.x, in an interpreter of its own: as it comes, or with its compatibility to 0.3."""

from __future__ import annotations

from typing import Any

import httpx
from a2a.helpers import new_task_from_user_message, new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import (
    BasePushNotificationSender,
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
    TaskUpdater,
)
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, TaskState
from agents.serving import listen, options, serve
from agents.verbs import Books, Heard, perform
from google.protobuf.json_format import MessageToDict


class Spoken:
    def __init__(self, context: RequestContext, queue: EventQueue) -> None:
        self._context = context
        self._queue = queue
        self._updater = TaskUpdater(queue, context.task_id, context.context_id)

    async def message(self, text: str) -> None:
        await self._queue.enqueue_event(new_text_message(text, context_id=self._context.context_id))

    async def begin(self) -> None:
        await self._queue.enqueue_event(new_task_from_user_message(self._context.message))
        await self._updater.start_work()

    async def artifact(self, text: str) -> None:
        await self._updater.add_artifact([new_text_part(text)], name="reply")

    async def state(self, word: str, text: str | None = None) -> None:
        said = None if text is None else new_text_message(text, context_id=self._context.context_id)
        name = f"TASK_STATE_{word.replace('-', '_').upper()}"
        await self._updater.update_status(TaskState.Value(name), said)


class Executor(AgentExecutor):
    def __init__(self, books: Books) -> None:
        self._books = books

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        message = MessageToDict(context.message)
        heard = Heard(
            message["messageId"],
            context.context_id,
            context.task_id,
            context.get_user_input(),
            message.get("metadata", {}),
            [part["data"] for part in message["parts"] if "data" in part],
            context.current_task is not None,
        )
        await perform(self._books, heard, Spoken(context, event_queue))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        self._books.cancelled.append(context.task_id)
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def card(url: str, *, compat: bool, push: bool) -> AgentCard:
    versions = ["1.0", "0.3"] if compat else ["1.0"]
    return AgentCard(
        name="compat" if compat else "plain",
        description="Does what the first word of a prompt says.",
        version="1.2.3",
        supported_interfaces=[
            AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version=each) for each in versions
        ],
        capabilities=AgentCapabilities(streaming=False, push_notifications=push),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="verbs", name="Verbs", description="Verbs", tags=["test"])],
    )


def main() -> None:
    chosen = options()
    listening, url = listen(chosen.port)
    books, shown = Books(), card(url, compat=chosen.compat, push=chosen.push)
    push: dict[str, Any] = {}
    if chosen.push:
        store = InMemoryPushNotificationConfigStore()
        sender = BasePushNotificationSender(httpx.AsyncClient(trust_env=False), store)
        push = {"push_config_store": store, "push_sender": sender}
    handler = DefaultRequestHandler(Executor(books), InMemoryTaskStore(), shown, **push)
    routes = [
        *create_agent_card_routes(shown),
        *create_jsonrpc_routes(handler, "/", enable_v0_3_compat=chosen.compat),
    ]
    serve(books.application(routes), listening, url, chosen)


if __name__ == "__main__":
    main()
