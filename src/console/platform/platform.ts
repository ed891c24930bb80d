import { placeProject } from '../shared/shell.tsx'
import { textIn } from '../shared/text.ts'
import { projects, roleIn } from './session.ts'
import { de } from './text/de.ts'
import { en, type PlatformText } from './text/en.ts'

/** The texts of the pages of the platform. */
export const text = textIn<PlatformText>({ en, de })

/** A word of a command line, for bash. */
export const shellWord = (word: string): string =>
  /^[\w%+,./:=@-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`

/** The same as a command on another machine. */
export const remote = (command: string): string => `edgeplatformctl --host ${location.host} ${command}`

/** Name of a project; its uid where it is not known. */
export const nameOfProject = (uid: string): string =>
  projects.value.find(({ metadata }) => metadata.uid === uid)?.metadata.name ?? uid

/** The same, in the project of the place. */
export function remoteScoped(command: string): string {
  const project = placeProject.value
  return remote(project === undefined ? command : `${command} --project ${shellWord(nameOfProject(project))}`)
}

/** A path of the API with some parameters, in a project, by default that of the place; empty values are left out. */
export function scoped(
  path: string,
  parameters: Readonly<Record<string, string>> = {},
  project = placeProject.value ?? '',
): string {
  const given = { ...parameters, ProjectUid: project }
  const query = new URLSearchParams(Object.entries(given).filter(([, value]) => value !== ''))
  return query.size === 0 ? path : `${path}?${query.toString()}`
}

/** Whether the user is an administrator of the tenant, as users, tokens and the audit trail need. */
export const isTenantAdmin = (): boolean => roleIn(undefined) === 'admin'
