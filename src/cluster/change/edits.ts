import { readFile } from 'node:fs/promises'
import type { Definitions } from '../../definition/definitions.ts'
import type { ClusterProfileDetail } from '../../definition/schemas.ts'
import { refusedField } from '../../errors/refused-field.ts'
import { readHostSettings } from '../configuration/host-settings.ts'
import { readProfiles } from '../read-generation.ts'
import type { ClusterConfiguration } from '../schemas.ts'
import { carryValues } from './carry-values.ts'
import { unmask } from './document.ts'
import type { Write } from './draft.ts'
import type { ClusterProfileConfiguration, EdgeClusterSettings } from './schemas.ts'
import { setValues } from './set-values.ts'

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

/** Takes another definition, or the present one, with the values that were given before, and those of the request. */
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
