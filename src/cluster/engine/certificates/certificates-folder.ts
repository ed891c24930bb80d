import { kubernetesFiles } from '../paths.ts'

const usual = kubernetesFiles.certificates

/** Folder of the certificates of the control plane. @param config text of the file for `kubeadm init` */
export async function certificatesFolderIn(config: string): Promise<string> {
  // The parser of YAML is loaded only where there is something to read.
  if (!config.includes('certificatesDir')) return usual
  const { documentsOf } = await import('../pack-config.ts')
  const folders = documentsOf(config).map(({ certificatesDir }) => certificatesDir)
  const given = folders.find((each) => typeof each === 'string' && each !== '')
  return typeof given === 'string' ? given : usual
}
