/** How a revision got on. */
export const outcomes = [
  // Accepted; it is begun when nothing else is under way, or at its time.
  'waiting',
  // Accepted, but required variables have no value.
  'held',
  'applying',
  // The cluster was Running with it.
  'good',
  // It was not available in time; the last good one is applied again.
  'failed',
  // Failed, and the last good one runs again.
  'rolledBack',
  // A later write came before it was good.
  'superseded',
] as const
export type Outcome = (typeof outcomes)[number]
