/**
 * The name under which this host is registered: the one that its administrator has given it, otherwise its host name, each with dashes where the
 * platform does not accept its characters, otherwise its id. `localhost` is a name of every host.
 * @param given `metadata.name` of this host, which is the id where none was given
 */
export function registeredName(given: string, hostName: string, id: string): string {
  const names = [given === id ? '' : given, /^localhost(\.|$)/i.test(hostName) ? '' : hostName, id]
  // An id may end with a dot or a dash.
  return names.map(toAccepted).find((name) => name !== '') ?? 'host'
}

const toAccepted = (name: string): string =>
  name
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
    .slice(0, 253)
    .replace(/[^A-Za-z0-9]+$/, '')
