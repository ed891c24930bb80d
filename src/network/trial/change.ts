import { isByDhcp, type ChangeSet, type NetworkState, type StateFile } from '../change-set.ts'

/** A file of the folder in which a change is handed to `network-trial`, by its path in that folder. */
export type ChangeFiles = ReadonlyMap<string, string>

/** A change set cannot be written for the program: a name or a path has a character that its lines end with. */
export class NotWritable extends Error {
  override readonly name = 'NotWritable'
}

/**
 * The folder of a change, as the head of `systemd/network-trial` describes it.
 * @param windowSeconds time from the start until the change is taken back
 * @throws NotWritable naming what cannot be written
 */
export function filesOfChange(uid: string, change: ChangeSet, windowSeconds: number): ChangeFiles {
  const files = new Map<string, string>()
  files.set('uid', `${uid}\n`)
  files.set('backend', `${change.backend}\n`)
  files.set('window', `${windowSeconds}\n`)
  files.set('links', lines(change.links.map(word)))
  addState(files, 'before', change.before)
  addState(files, 'after', change.after)
  files.set('after/heirs', lines([...heirsOf(change)].map(([link, heir]) => `${word(link)} ${word(heir)}`)))
  const { asked = [] } = change
  files.set('after/asked', lines(asked.map(({ link, address }) => `${word(link)} ${word(address)}`)))
  addFiles(files, 'kept', change.kept)
  return files
}

/**
 * The link that has, after the change, what other programs have put on a link: the bridge over a NIC has the virtual address of the cluster that was on
 * the NIC, and the NIC has it again when the bridge is gone.
 */
export function heirsOf({ before, after }: Pick<ChangeSet, 'before' | 'after'>): ReadonlyMap<string, string> {
  const linksOf = (state: NetworkState) => new Set(state.expected.map(({ link }) => link))
  const [old, next] = [linksOf(before), linksOf(after)]
  const left = [...old].filter((link) => !next.has(link))
  const [heir, ...others] = [...next].filter((link) => !old.has(link))
  // With several of them nothing says which one it is; then the link that is left keeps it.
  return new Map(heir === undefined || others.length > 0 ? [] : left.map((link) => [link, heir]))
}

function addState(files: Map<string, string>, name: string, state: NetworkState): void {
  addFiles(files, name, state.files)
  files.set(`${name}/devices`, lines(state.devices.map(word)))
  files.set(`${name}/up`, lines(state.up.map(line)))
  files.set(
    `${name}/expected`,
    lines(
      state.expected.map((each) => {
        const { link, gateway = '-', addresses } = each
        return [link, gateway, ...(isByDhcp(each) ? ['dhcp'] : []), ...addresses].map(word).join(' ')
      }),
    ),
  )
}

function addFiles(files: Map<string, string>, name: string, all: readonly StateFile[]): void {
  const rows = all.map(({ path, mode, content }, number) => {
    if (!/^\/[^\n]*[^\n/]$/.test(path))
      throw new NotWritable(`the path ${JSON.stringify(path)} cannot be written`)
    if (typeof content === 'object') files.set(`${name}/${number}`, content.text)
    return `${number} ${mode.toString(8)} ${typeof content === 'object' ? 'text' : content} ${path}`
  })
  files.set(`${name}/files`, lines(rows))
}

const lines = (all: readonly string[]) => all.map((each) => `${each}\n`).join('')

function word(text: string): string {
  if (/^[^\s]+$/.test(text)) return text
  throw new NotWritable(`the name ${JSON.stringify(text)} cannot be written`)
}

function line(text: string): string {
  if (/^[^\n]+$/.test(text)) return text
  throw new NotWritable(`the name ${JSON.stringify(text)} cannot be written`)
}
