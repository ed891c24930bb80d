import type { ClusterProfileDetail } from '../../definition/schemas.ts'
import type { ClusterConfiguration } from '../schemas.ts'
import { readFile } from 'node:fs/promises'
import type { Definitions } from '../../definition/definitions.ts'
import { refusedField } from '../../errors/refused-field.ts'
import { readHostSettings } from './host-settings.ts'
import { readProfiles } from './prepared.ts'
import { unmask, type Write } from './draft.ts'
import type { ClusterProfileConfiguration, EdgeClusterSettings } from './schemas.ts'

type Given = NonNullable<NonNullable<ClusterConfiguration['spec']>['profileVariables']>[number]

/**
 * The values that were given before, for another definition: a value follows its profile, which is known by its uid, otherwise by its
 * name, as each version of a profile has a uid of its own. A value whose variable is gone is left out. Pure.
 */
export function carryValues(
  given: readonly Given[],
  before: readonly ClusterProfileDetail[],
  after: readonly ClusterProfileDetail[],
): readonly Given[] {
  const declares = ({ variables }: ClusterProfileDetail, name: string) =>
    variables.some((variable) => variable.name === name)
  const named = (uid: string) => before.find(({ profileUid }) => profileUid === uid)?.profileName
  return given.flatMap((each) => {
    const { name = '', profileUid = '' } = each
    if (profileUid === '') return after.some((profile) => declares(profile, name)) ? [each] : []
    const profile =
      after.find((candidate) => candidate.profileUid === profileUid) ??
      after.find(({ profileName }) => profileName === named(profileUid))
    return profile && declares(profile, name) ? [{ ...each, profileUid: profile.profileUid }] : []
  })
}

/**
 * Values with some of them replaced or added. A value without a profile is for the only one with its name, whatever the profile; where
 * several profiles have the name, it is added, and the check of the configuration says that it needs a profile. Pure.
 */
export function setValues(present: readonly Given[], more: readonly Given[]): readonly Given[] {
  return more.reduce<readonly Given[]>((values, { name = '', profileUid = '', value = '' }) => {
    const same = values.filter((each) => (each.name ?? '') === name)
    const exact = same.find((each) => (each.profileUid ?? '') === profileUid)
    const possible = same.filter((each) => profileUid === '' || (each.profileUid ?? '') === '')
    const found = exact ?? (possible.length === 1 ? possible[0] : undefined)
    if (found) return values.map((each) => (each === found ? { ...each, value } : each))
    return [...values, { name, ...(profileUid === '' ? {} : { profileUid }), value }]
  }, present)
}

type Edit = Write['edit']

/** Replaces the settings of the host. */
export const withSettings =
  ({ ntpServers = [], sshKeys = [] }: EdgeClusterSettings): Edit =>
  async (shown) => {
    // Names the entry by its place in this body.
    readHostSettings({ ntpServers, sshKeys }, '')
    const { cloudConfig = {} } = shown.spec ?? {}
    const { spec = {} } = cloudConfig
    return {
      ...shown,
      spec: {
        ...shown.spec,
        cloudConfig: {
          ...cloudConfig,
          spec: { ...spec, clusterConfig: { ...spec.clusterConfig, ntpServers, sshKeys } },
        },
      },
    }
  }

/** Takes another definition, or the present one, with the values that were given before, and the request's. */
export const withDefinition =
  (definitions: Pick<Definitions, 'archiveOf'>) =>
  ({ metadata, spec = {} }: ClusterProfileConfiguration): Edit =>
  async (shown, revision) => {
    const { archiveUploadPath = '', profileVariables: given = [], scheduleAt } = spec
    if (archiveUploadPath === '')
      throw refusedField('spec.archiveUploadPath', 'is missing: it names the definition')
    const named: ClusterConfiguration = metadata
      ? { ...shown, metadata: { ...shown.metadata, ...metadata } }
      : shown
    const present = shown.spec?.profileVariables ?? []
    const made = (values: Parameters<typeof setValues>[0]): ClusterConfiguration => ({
      ...named,
      spec: {
        ...shown.spec,
        archiveUploadPath,
        // A list that was not there before, and has nothing now, would be a change.
        ...(shown.spec?.profileVariables || values.length + given.length > 0
          ? { profileVariables: [...setValues(values, given)] }
          : {}),
        ...(scheduleAt === undefined ? {} : { scheduleAt }),
      },
    })
    if (archiveUploadPath === shown.spec?.archiveUploadPath) return made(present)
    const { details } = await definitions.archiveOf(archiveUploadPath)
    const [before, after] = await Promise.all([
      readProfiles(revision),
      readFile(details, 'utf8').then((text) => JSON.parse(text) as ClusterProfileDetail[]),
    ])
    // In plain text: a mask is known by the uid of its profile, which another version of the profile does not have.
    const plain = unmask(shown, revision).spec?.profileVariables ?? []
    return made(carryValues(plain, before, after))
  }
