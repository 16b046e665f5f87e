// The explanation of a decision at an instant: its outcome, its sentence and all checks with their evidence.
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { Schemas } from "../api/client";
import { useRead } from "../api/hooks";
import { Badge, Mark } from "../marks/Mark";
import { CERTAINTY_TEXTS, HELD, reasonText, RUN_LOOKS } from "../marks/outcomes";
import { dateTimeText, useViewerZone } from "../time/zones";
import { CHECK_ANSWERS, NOT_APPLICABLE, VIEW_RUN } from "../words";
import { Button } from "./Button";
import { Dialog } from "./Dialog";
import { ANSWER_LOOKS, answered, evidence, NOT_CREATED, OUTCOME_LOOKS, questionText, sentenceParts } from "./evidence";
import "./explain.css";
import { Json } from "./Json";
import { Shown } from "./Shown";
import { fullText, When, zoneLabel } from "./When";

interface Props {
  scheduleId: string;
  /** Any instant, past or future; it need not be an occurrence. */
  at: string;
  /** The time zone of the schedule. */
  zone?: string | null;
  onClose: () => void;
}

export function ExplainDialog({ scheduleId, at, zone, onClose }: Props) {
  const [moment, setMoment] = useState(at);
  const found = useRead(
    "/api/schedules/{schedule_id}/explain",
    { path: { schedule_id: scheduleId }, query: { at: moment } },
    { keep: true },
  );
  const stale = found.isPlaceholderData;
  return (
    <Dialog title="Explanation" onClose={onClose} wide>
      <div className="row far explain-head">
        <div className="stack explain-what">
          <Link to="/schedules/$scheduleId" params={{ scheduleId }} onClick={onClose}>
            <bdi>{scheduleId}</bdi>
          </Link>
          <When at={moment} zone={zone} />
        </div>
        <Steps previous={found.data?.previous} following={found.data?.following} zone={zone} onGo={setMoment} />
      </div>
      <div aria-live="polite" aria-busy={stale} className={stale ? "stack explain-stale" : "stack"}>
        <Shown of={found}>{(explanation) => <Found explanation={explanation} zone={zone} onLeave={onClose} />}</Shown>
      </div>
    </Dialog>
  );
}

interface StepsProps {
  previous: string | null | undefined;
  following: string | null | undefined;
  zone?: string | null;
  onGo: (at: string) => void;
}

function Steps({ previous, following, zone, onGo }: StepsProps) {
  const viewer = useViewerZone();
  const told = (at: string | null | undefined) => (at ? fullText(at, zone ?? null, viewer) : undefined);
  return (
    <div className="row tight" role="group" aria-label="Other occurrences of this schedule">
      <Button small disabled={!previous} title={told(previous)} onClick={() => previous && onGo(previous)}>
        Previous
      </Button>
      <Button small disabled={!following} title={told(following)} onClick={() => following && onGo(following)}>
        Next
      </Button>
    </div>
  );
}

function Found({
  explanation,
  zone,
  onLeave,
}: {
  explanation: Schemas["Explanation"];
  zone?: string | null;
  onLeave: () => void;
}) {
  const why = reasonText(explanation.reason);
  const run = runIdOf(explanation.recorded?.payload);
  return (
    <>
      <div className="row">
        <Badge look={explanation.existed === false ? NOT_CREATED : OUTCOME_LOOKS[explanation.outcome]} />
        {explanation.held && explanation.recorded === null ? <Badge look={HELD} text="Will buffer" /> : null}
        {explanation.certainty ? (
          <span className={`certainty certainty-${explanation.certainty}`} title={explanation.sentence}>
            {CERTAINTY_TEXTS[explanation.certainty]}
          </span>
        ) : null}
        {why ? <span>{why}</span> : null}
        {run ? <ItsRun runId={run} onLeave={onLeave} /> : null}
      </div>
      <p className="explain-sentence">
        <Timed text={explanation.sentence} zone={zone} />
      </p>
      {explanation.existed === false ? null : <Findings of={explanation} zone={zone} />}
      {explanation.recorded ? (
        <details>
          <summary>
            Recorded event: <code>{explanation.recorded.event_type}</code>
          </summary>
          <Json value={explanation.recorded.payload} label="Recorded event" />
        </details>
      ) : null}
    </>
  );
}

/** The state of the run, if it still exists, and a link to its page. */
function ItsRun({ runId, onLeave }: { runId: string; onLeave: () => void }) {
  const run = useRead("/api/runs/{run_id}", { path: { run_id: runId } }, { staleSeconds: 5 });
  return (
    <>
      {run.data ? <Badge look={RUN_LOOKS[run.data.state]} /> : null}
      <Link to="/runs/$runId" params={{ runId }} onClick={onLeave}>
        {VIEW_RUN}
      </Link>
    </>
  );
}

/** The checks in order of evaluation; below them those that were not evaluated. */
function Findings({ of, zone }: { of: Schemas["Explanation"]; zone?: string | null }) {
  const asked = of.findings.filter((each) => each.holds !== null);
  const others = of.findings.filter((each) => each.holds === null);
  return (
    <>
      <h3>
        {of.source === "history" ? "Checks at decision time, " : "Checks as of now"}
        {of.source === "history" ? <When at={of.as_of} zone={zone} brief /> : null}
      </h3>
      <ul className="plain explain-findings">
        {asked.map((each) => (
          <FindingRow key={each.question} finding={each} zone={zone} />
        ))}
      </ul>
      {others.length > 0 ? (
        <p className="muted small">
          {of.source === "history" ? CHECK_ANSWERS.notEvaluated : NOT_APPLICABLE}:{" "}
          {others.map((each) => questionText(each.question)).join(" · ")}
        </p>
      ) : null}
    </>
  );
}

function FindingRow({ finding, zone }: { finding: Schemas["Finding"]; zone?: string | null }) {
  const answer = answered(finding.holds);
  return (
    <li className={answer === CHECK_ANSWERS.no ? "refused" : undefined}>
      <Mark look={ANSWER_LOOKS[answer]} />
      <div className="grow">
        <div>{questionText(finding.question)}</div>
        {evidence(finding.question, finding.detail).map((line, index) => (
          <div key={index} className="muted small" dir="auto">
            <Timed text={line} zone={zone} />
          </div>
        ))}
      </div>
      <span className={`nowrap tone-${ANSWER_LOOKS[answer].tone}`} aria-hidden="true">
        {answer}
      </span>
    </li>
  );
}

// Ids created in sequence differ at their end.
const END_OF_ID = 6;

/** A text of the service with instants in the schedule's zone and links to runs. */
export function Timed({ text, zone }: { text: string; zone?: string | null }) {
  const viewer = useViewerZone();
  const shown = zone ?? viewer;
  return sentenceParts(text).map((part, index) =>
    "at" in part ? (
      <time key={index} dateTime={part.at} title={fullText(part.at, zone ?? null, viewer)}>
        {dateTimeText(part.at, shown)} {zoneLabel(part.at, shown)}
      </time>
    ) : "run" in part ? (
      <Link key={index} to="/runs/$runId" params={{ runId: part.run }} title={part.run} aria-label={`Run ${part.run}`}>
        …{part.run.slice(-END_OF_ID)}
      </Link>
    ) : (
      <span key={index}>{part.text}</span>
    ),
  );
}

function runIdOf(payload: unknown): string | null {
  const found = (payload as { workflow_run_id?: unknown } | null | undefined)?.workflow_run_id;
  return typeof found === "string" ? found : null;
}
