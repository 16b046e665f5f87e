"""An agent of the published SDK 0.3, in an interpreter of its own."""

from __future__ import annotations

from typing import Any

import httpx
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.apps import A2AStarletteApplication
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import (
    BasePushNotificationSender,
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
    TaskUpdater,
)
from a2a.types import AgentCapabilities, AgentCard, AgentSkill, DataPart, Part, TaskState, TextPart
from a2a.utils import new_agent_text_message, new_task
from agents.serving import listen, options, serve
from agents.verbs import Books, Heard, perform


class Spoken:
    def __init__(self, context: RequestContext, queue: EventQueue) -> None:
        self._context = context
        self._queue = queue
        self._updater = TaskUpdater(queue, context.task_id, context.context_id)

    async def message(self, text: str) -> None:
        await self._queue.enqueue_event(new_agent_text_message(text, context_id=self._context.context_id))

    async def begin(self) -> None:
        await self._queue.enqueue_event(new_task(self._context.message))
        await self._updater.start_work()

    async def artifact(self, text: str) -> None:
        await self._updater.add_artifact([Part(root=TextPart(text=text))], name="reply")

    async def state(self, word: str, text: str | None = None) -> None:
        said = None if text is None else new_agent_text_message(text, context_id=self._context.context_id)
        state = TaskState(word)
        ends = word in ("completed", "failed", "rejected", "input-required", "auth-required")
        await self._updater.update_status(state, said, final=ends)


class Executor(AgentExecutor):
    def __init__(self, books: Books) -> None:
        self._books = books

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        message = context.message
        heard = Heard(
            message.message_id,
            context.context_id,
            context.task_id,
            context.get_user_input(),
            message.metadata or {},
            [part.root.data for part in message.parts if isinstance(part.root, DataPart)],
            context.current_task is not None,
        )
        await perform(self._books, heard, Spoken(context, event_queue))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        self._books.cancelled.append(context.task_id)
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def card(url: str, *, push: bool) -> AgentCard:
    return AgentCard(
        name="old",
        description="Does what the first word of a prompt says.",
        version="1.2.3",
        url=url,
        capabilities=AgentCapabilities(streaming=False, push_notifications=push),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="verbs", name="Verbs", description="Verbs", tags=["test"])],
    )


def main() -> None:
    chosen = options()
    listening, url = listen(chosen.port)
    books, shown = Books(), card(url, push=chosen.push)
    push: dict[str, Any] = {}
    if chosen.push:
        store = InMemoryPushNotificationConfigStore()
        sender = BasePushNotificationSender(httpx.AsyncClient(trust_env=False), store)
        push = {"push_config_store": store, "push_sender": sender}
    handler = DefaultRequestHandler(Executor(books), InMemoryTaskStore(), **push)
    routes = A2AStarletteApplication(shown, handler).routes()
    serve(books.application(routes), listening, url, chosen)


if __name__ == "__main__":
    main()
