// API tokens, secrets and namespaces.
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useMay, useSession } from "../../api/session";
import { Page } from "../../parts/Page";
import { Tabs, type Tab } from "../../parts/Tabs";
import { Namespaces } from "./Namespaces";
import { Secrets } from "./Secrets";
import { Tokens } from "./Tokens";

export default function Access() {
  const administers = useMay("administer");
  const { everywhere } = useSession();
  const navigate = useNavigate();
  const { tab }: { tab?: unknown } = useSearch({ strict: false });
  const tabs: Tab[] = [
    ...(administers ? [{ id: "tokens", text: "Tokens" }] : []),
    { id: "secrets", text: "Secrets" },
    ...(everywhere ? [{ id: "namespaces", text: "Namespaces" }] : []),
  ];
  const chosen = tabs.find((each) => each.id === tab)?.id ?? tabs[0]!.id;
  return (
    <Page title="Access" about="API tokens and secrets.">
      <Tabs
        label="Access"
        tabs={tabs}
        chosen={chosen}
        onChoose={(id) => void navigate({ to: "/access", search: { tab: id } as never, replace: true })}
      >
        {chosen === "tokens" ? <Tokens /> : chosen === "namespaces" ? <Namespaces /> : <Secrets />}
      </Tabs>
    </Page>
  );
}
