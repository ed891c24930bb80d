// What the platform accepts as the name of a host.
const accepted = /^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$/

/**
 * The name under which this host is registered: the configured one, otherwise its host name, where the platform accepts these. `localhost` is a
 * name of every host.
 */
export function nameFor(configured: string | undefined, hostName: string, id: string): string {
  const found = [configured, hostName].find(
    (name) => name !== undefined && accepted.test(name) && !/^localhost(\.|$)/i.test(name),
  )
  // An id may end with a dot or a dash.
  return found ?? (accepted.test(id) ? id : `${id}0`)
}
