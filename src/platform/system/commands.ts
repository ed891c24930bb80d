import { defineCommand, type Noun } from '../../ctl/command.ts'
import { onHost } from '../../ctl/on-host.ts'
import { yes, type Options } from '../../ctl/options.ts'

export const status: Noun = [
  defineCommand({
    name: 'status',
    summary: 'Show the state of the platform, its addresses and the fingerprint of its certificate',
    load: onHost(async () => (await import('./commands-status.ts')).showStatus),
  }),
]

const passphrase = {
  'passphrase-file': {
    value: 'FILE',
    summary: 'Read the passphrase from the first line of this file; - is standard input.',
    completes: 'file',
  },
} as const satisfies Options

export const backup: Noun = [
  defineCommand({
    name: 'backup',
    arguments: ['FILE'],
    summary: 'Write the whole platform into one file, encrypted with a passphrase, while it runs',
    details:
      'Needs root. The file has the database, the secrets, the certificate with its key, and the configuration; restore reads it, and nothing else does.',
    options: passphrase,
    completes: 'file',
    load: async () => (await import('./commands-backup.ts')).runBackup,
  }),
  defineCommand({
    name: 'restore',
    arguments: ['FILE'],
    summary: 'Replace the platform of this machine by the one of a backup',
    details:
      'Needs root, and a platform that does not run: systemctl stop edgeplatformd.socket edgeplatformd.service. The whole file is checked before anything is changed; the former state is put aside, and its folder is named.',
    options: { ...passphrase, yes },
    completes: 'file',
    load: async () => (await import('./commands-backup.ts')).runRestore,
  }),
  defineCommand({
    name: 'recover',
    summary: 'Take over the readable part of a damaged state, where there is no backup',
    details:
      'Needs root, and a platform that does not run: systemctl stop edgeplatformd.socket edgeplatformd.service. Rows of the database that cannot be read are missing afterwards; where the secret or the certificate is damaged, a new one is made. The former state is put aside whole, and its folder is named. With a backup, restore it instead.',
    options: { yes },
    load: async () => (await import('./commands-backup.ts')).runRecover,
  }),
  defineCommand({
    name: 'fresh-start',
    summary: 'Put the state aside and begin with no users, projects and hosts',
    details:
      'Needs root, and a platform that does not run: systemctl stop edgeplatformd.socket edgeplatformd.service. Nothing is removed: the former state is put aside whole, and its folder is named.',
    options: { yes },
    load: async () => (await import('./commands-backup.ts')).runFreshStart,
  }),
]

export const secret: Noun = [
  defineCommand({
    name: 'secret change',
    summary: 'Replace the secret of the platform, and reseal the data sealed with it',
    details:
      'Needs root, and a platform that does not run: systemctl stop edgeplatformd.socket edgeplatformd.service. For a secret that someone may have read: all tokens end, users log in again, hosts do so by themselves. API keys and registration tokens stay. If it was interrupted, run it again.',
    options: { yes },
    load: async () => (await import('./commands-backup.ts')).runSecretChange,
  }),
]
