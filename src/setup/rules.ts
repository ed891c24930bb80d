// Names of hosts, and the files that have them. Pure.

/** sethostname(2): HOST_NAME_MAX. */
const longest = 64

/** What is wrong with a host name; continues the sentence that its field begins. A Kubernetes node gets this name later, so the rules of both hold. */
export function problemOfHostName(name: string): string | undefined {
  if (name === '') return 'is empty; give a name such as line-7'
  if (name.length > longest) return `is longer than ${longest} characters`
  if (name !== name.toLowerCase()) return `has capital letters; write it as ${name.toLowerCase()}`
  if (!name.split('.').every((label) => /^[a-z\d]([a-z\d-]{0,61}[a-z\d])?$/.test(label)))
    return 'is no name of a host: labels of 1 to 63 letters, digits and -, not at their ends, with dots between'
  if (/^[\d.]+$/.test(name)) return 'consists of digits only, and would be taken for an address'
  if (name === 'localhost' || name.endsWith('.localhost') || name.startsWith('localhost.'))
    return 'is the name of every host for itself'
  return undefined
}

/** The address of Debian for the name of the host itself, hosts(5). */
const ownAddress = '127.0.1.1'

/**
 * `/etc/hosts` with a new name of the host: in the line of 127.0.1.1 the old name is replaced, where there is one; aliases of an administrator stay.
 * @param before the present name
 */
export function hostsWith(text: string, before: string, name: string): string {
  const [short = name] = name.split('.')
  const own = name === short ? [name] : [name, short]
  const lines = text.split('\n')
  const at = lines.findIndex((line) => line.trim().split(/\s+/)[0] === ownAddress)
  if (at < 0) {
    const isNamed = lines.some((line) =>
      (line.split('#')[0] ?? '').trim().split(/\s+/).slice(1).includes(name),
    )
    if (isNamed) return text
    // Below the line of localhost, as Debian has it.
    const below = lines.findIndex((line) => line.trim().split(/\s+/)[0] === '127.0.0.1') + 1
    return [...lines.slice(0, below), `${ownAddress}\t${own.join(' ')}`, ...lines.slice(below)].join('\n')
  }
  const [values, comment] = splitComment(lines[at] ?? '')
  const [oldShort = ''] = before.split('.')
  const isOld = (word: string) =>
    word === before || word === oldShort || (oldShort !== '' && word.startsWith(`${oldShort}.`))
  const others = values
    .trim()
    .split(/\s+/)
    .slice(1)
    .filter((word) => !isOld(word) && !own.includes(word))
  const line = `${ownAddress}\t${[...own, ...others].join(' ')}${comment === undefined ? '' : ` #${comment}`}`
  return lines.with(at, line).join('\n')
}

function splitComment(line: string): [string, string | undefined] {
  const at = line.indexOf('#')
  return at < 0 ? [line, undefined] : [line.slice(0, at), line.slice(at + 1)]
}
