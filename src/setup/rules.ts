// Names of hosts, and the files that have them. Pure.

/** sethostname(2): HOST_NAME_MAX. */
const longest = 64

/** The fault of a host name; continues the sentence that its field begins. A Kubernetes node gets this name later, so the rules of both hold. */
export function problemOfHostName(name: string): string | undefined {
  if (name === '') return 'is empty; give a name such as line-7'
  if (name.length > longest) return `is longer than ${longest} characters`
  if (
    !name
      .toLowerCase()
      .split('.')
      .every((label) => /^[a-z\d]([a-z\d-]{0,61}[a-z\d])?$/.test(label))
  )
    return 'is no name of a host: labels of 1 to 63 letters, digits and -, not at their ends, with dots between'
  if (name !== name.toLowerCase()) return `has capital letters; write it as ${name.toLowerCase()}`
  if (/^[\d.]+$/.test(name)) return 'consists of digits only, and would be taken for an address'
  if (name === 'localhost' || name.endsWith('.localhost') || name.startsWith('localhost.'))
    return 'is the name of every host for itself'
  return undefined
}

/** The address of Debian for the name of the host itself, hosts(5). */
const ownAddress = '127.0.1.1'

/**
 * `/etc/hosts` with a new name of the host: in the line of 127.0.1.1 the old name is replaced, where there is one; aliases of an administrator stay.
 * As for the C library, names are the same in capitals, and a carriage return is a blank.
 * @param before the present name
 */
export function hostsWith(text: string, before: string, name: string): string {
  const [short = name] = name.split('.')
  const own = name === short ? [name] : [name, short]
  const lines = text.split('\n')
  const end = lines[0]?.endsWith('\r') === true ? '\r' : ''
  const namesOf = (line: string, address: string) => {
    const [first, ...names] = splitComment(line)[0].trim().split(/\s+/)
    return first === address ? names : undefined
  }
  const [oldShort = ''] = before.toLowerCase().split('.')
  const isOld = (word: string) => oldShort !== '' && word.toLowerCase().split('.')[0] === oldShort
  const places = [...lines.keys()].filter((index) => namesOf(lines[index] ?? '', ownAddress))
  const at = places.find((index) => namesOf(lines[index] ?? '', ownAddress)?.some(isOld)) ?? places[0]
  if (at === undefined) {
    const isNamed = lines.some((line) =>
      splitComment(line)[0]
        .trim()
        .split(/\s+/)
        .slice(1)
        .some((word) => word.toLowerCase() === name),
    )
    if (isNamed) return text
    // Below the line of localhost, as Debian has it.
    const below = lines.findIndex((line) => namesOf(line, '127.0.0.1')) + 1
    return [...lines.slice(0, below), `${ownAddress}\t${own.join(' ')}${end}`, ...lines.slice(below)].join(
      '\n',
    )
  }
  const line = lines[at] ?? ''
  const comment = splitComment(line)[1]
  const others = (namesOf(line, ownAddress) ?? []).filter(
    (word) => !isOld(word) && !own.includes(word.toLowerCase()),
  )
  const said = comment === undefined ? end : ` #${comment}`
  return lines.with(at, `${ownAddress}\t${[...own, ...others].join(' ')}${said}`).join('\n')
}

function splitComment(line: string): [string, string | undefined] {
  const at = line.indexOf('#')
  return at < 0 ? [line, undefined] : [line.slice(0, at), line.slice(at + 1)]
}
