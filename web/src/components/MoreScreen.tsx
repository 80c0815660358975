/** What is not looked at every day: landings, overlaps, values, signals, the archive, settings, metrics, other repositories. */
import { moreSection, type MoreSection } from "../state/place";
import { ArchiveSearch } from "./ArchiveSearch";
import { LandingList } from "./LandingList";
import { MetricsTable } from "./MetricsTable";
import { OverlapList } from "./OverlapList";
import { RepositoryList } from "./RepositoryList";
import { SettingsTable } from "./SettingsTable";
import { SignalList } from "./SignalList";
import { Tabs } from "./Tabs";
import { ValueList } from "./ValueList";

const TITLES: Record<MoreSection, string> = {
  landings: "Landings",
  overlaps: "Overlaps",
  values: "Values",
  signals: "Signals",
  archive: "Archive",
  settings: "Settings",
  metrics: "Metrics",
  repositories: "Repositories",
};
const SECTIONS: Record<MoreSection, () => preact.JSX.Element> = {
  landings: LandingList,
  overlaps: OverlapList,
  values: ValueList,
  signals: SignalList,
  archive: ArchiveSearch,
  settings: SettingsTable,
  metrics: MetricsTable,
  repositories: RepositoryList,
};

export function MoreScreen() {
  const Section = SECTIONS[moreSection.value];
  return (
    <section aria-labelledby="more">
      <h2 id="more">More</h2>
      <Tabs label="What to see" titles={TITLES} shown={moreSection.value} show={(section) => (moreSection.value = section)}>
        <Section />
      </Tabs>
    </section>
  );
}
