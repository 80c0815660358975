/** A folder of the tree of leases: it opens and closes. */
import { Words } from "./Words";

/** What the folder of names that are no files is called. */
const NO_FILES = "keys and git";

interface Props {
  folder: string;
  count: number;
  open: boolean;
  top: number;
  toggle: () => void;
}

export function FolderRow({ folder, count, open, top, toggle }: Props) {
  return (
    <li class="lease folder" style={{ top: `${top}px` }}>
      <button type="button" class="link" aria-expanded={open} onClick={toggle}>
        <span aria-hidden="true">{open ? "▾" : "▸"}</span> <Words text={folder || NO_FILES} />
      </button>
      <span class="dim">{count}</span>
    </li>
  );
}
