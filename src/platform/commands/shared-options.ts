import type { Option } from '../../ctl/options.ts'

// Options of several nouns of the platform.

export const project: Option = { value: 'PROJECT', summary: 'A project, by its name or uid.' }

export const expiry: Option = {
  value: 'TIME',
  summary: 'When it ends: a date such as 2027-01-31, or a time from now such as +30d.',
}

/** Of deletions of clusters and of hosts. */
export const force = { summary: 'Forget the cluster without its host, which keeps what it runs.' } as const
