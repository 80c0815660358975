/** The padlock: filled for an exclusive lease, hollow for a shared one. */
export function Padlock({ shared }: { shared: boolean }) {
  return (
    <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path d="M5 7V5a3 3 0 0 1 6 0v2" fill="none" stroke="currentColor" stroke-width="1.6" />
      <rect x="3" y="7" width="10" height="7" rx="1.5" fill={shared ? "none" : "currentColor"} stroke="currentColor" stroke-width="1.4" />
    </svg>
  );
}
