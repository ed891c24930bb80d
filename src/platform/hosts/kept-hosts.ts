// Hosts send a heartbeat each minute, at a random second: at most two minutes lie between two.
const idleMs = 150_000

/** Which connections the port keeps open between two heartbeats: one of each host that is logged in, up to a maximum. */
export const keptHosts = (maximum: number) => ({
  maximum,
  idleMs,
  isFor: ({ kind }: { readonly kind?: string | undefined }) => kind === 'host',
})
