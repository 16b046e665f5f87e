// A button that loads the next page of a list.
import { Button } from "./Button";

export interface Pages {
  hasNextPage: boolean;
  isFetchingNextPage: boolean;
  fetchNextPage: () => unknown;
}

export function LoadMore({ of, text = "Load more" }: { of: Pages; text?: string }) {
  if (!of.hasNextPage) return null;
  return (
    <div className="row">
      <Button busy={of.isFetchingNextPage} onClick={() => void of.fetchNextPage()}>
        {text}
      </Button>
    </div>
  );
}
